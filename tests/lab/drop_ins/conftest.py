"""The fixtures of the health check's own tests."""

from tests.lab.health.conftest import idle, victim

__all__ = ["idle", "victim"]
