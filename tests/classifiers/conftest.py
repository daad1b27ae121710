"""Chat classifiers for tests: a server of our own, and no waiting between its failures."""

import pytest

from chat_servers import ChatDouble
from slalom.classifiers.chat import server


@pytest.fixture
def double():
    with ChatDouble() as server:
        yield server


@pytest.fixture
def quick(monkeypatch):
    """No key in the environment, and failures that are repeated at once."""
    monkeypatch.setattr(server, "FIRST_PAUSE", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
