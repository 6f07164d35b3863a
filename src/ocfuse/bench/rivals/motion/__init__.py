"""Parts of the rival that predicts motion: optical flow, film, networks, training."""
