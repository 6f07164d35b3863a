"""The commands by name."""

#: Their modules, imported when they are called as some need scikit-learn, which takes long; and
#: what the help says.
COMMANDS = {
    "demo": (
        "ocfuse.cli.demo",
        "Learn from normal rows, raise alarms on new ones, say why, and write a report.",
    ),
    "fit": ("ocfuse.cli.fit", "Learn what is normal from a table, and write a model."),
    "score": ("ocfuse.cli.score", "Score the rows of a table by a model."),
    "explain": ("ocfuse.cli.explain", "Say what lies behind the scores of some rows."),
    "watch": ("ocfuse.cli.watch", "Score rows as they come, and tell the alarms at once."),
    "serve": (
        "ocfuse.cli.serve",
        "Serve models: scores, explanations and streams over HTTP, and a live page.",
    ),
    "inspect": ("ocfuse.cli.inspect", "Show what a model is and what it learned from."),
    "compare": (
        "ocfuse.cli.compare",
        "Compare the default detector, its members, all rules and all fusions on your own data.",
    ),
    "simulate": (
        "ocfuse.cli.simulate",
        "Record a simulated robot that picks and places, with anomalies in some runs.",
    ),
    "data": ("ocfuse.cli.data", "List, fetch and show data sets."),
    "bench": ("ocfuse.cli.bench", "Run the paper's experiment again."),
}
#: Those among them that are groups of commands and have no settings in a file.
GROUPS = ("data", "bench")
#: Commands that have flags of their own for recordings: their modules with ``--video``.
VIDEO = {"fit": "ocfuse.cli.videofit", "watch": "ocfuse.cli.videowatch"}
#: The same for runs of sensors: their modules with ``--stream``.
STREAM = {"fit": "ocfuse.cli.streamfit"}
