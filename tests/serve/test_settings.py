from pathlib import Path

import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.settings import Limits, Retention, Settings, is_loopback, named_models, read_token

MODELS = {"m": Path("m.ocf")}
TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "localhost", "::1", "[::1]"])
def test_this_machine_needs_no_token(host):
    assert is_loopback(host)
    assert Settings(MODELS, host=host).token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "plant.example", ""])
def test_other_addresses_need_a_token(host):
    with pytest.raises(InvalidInputError, match="needs a token"):
        Settings(MODELS, host=host)
    assert Settings(MODELS, host=host, token=TOKEN).host == host


@pytest.mark.parametrize("token", ["short", "with space 0123456789", "ü123456789abcdef0"])
def test_bad_tokens_are_refused_without_being_shown(token):
    with pytest.raises(InvalidInputError, match="at least 16") as caught:
        Settings(MODELS, token=token)
    assert token not in str(caught.value)


def test_a_token_is_not_shown():
    assert TOKEN not in repr(Settings(MODELS, token=TOKEN))


def test_token_of_a_file_or_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("OCFUSE_TOKEN", raising=False)
    assert read_token() is None
    monkeypatch.setenv("OCFUSE_TOKEN", TOKEN)
    assert read_token() == TOKEN
    (tmp_path / "token").write_text("from-the-file-0123\n")
    assert read_token(tmp_path / "token") == "from-the-file-0123"
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="ASCII"):
        read_token(tmp_path / "token")


def test_tls_needs_both_files():
    with pytest.raises(InvalidInputError, match="both"):
        Settings(MODELS, tls_cert=Path("cert.pem"))


def test_limits_are_above_zero():
    with pytest.raises(InvalidInputError, match="rows"):
        Limits(rows=0)


def test_what_is_kept_is_above_zero():
    assert Retention().days is None
    for bounds in ({"days": 0.0}, {"events": 0}, {"picture_bytes": -1}, {"days": float("nan")}):
        with pytest.raises(InvalidInputError, match=next(iter(bounds))):
            Retention(**bounds)


def test_names_of_models():
    found = named_models(["pump=models/a.ocf", "other/belt.ocf"])
    assert found == {"pump": Path("models/a.ocf"), "belt": Path("other/belt.ocf")}
    with pytest.raises(InvalidInputError, match="another name"):
        named_models(["a/pump.ocf", "b/pump.ocf"])
    with pytest.raises(InvalidInputError, match="letters"):
        named_models(["a b=model.ocf"])
    with pytest.raises(InvalidInputError, match="at least one"):
        Settings({})
