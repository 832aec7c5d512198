"""The page about deployment names options that exist."""

import inspect
import pathlib
import re

from anchorline.cli.serve import serve
from anchorline.studio import server

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "deployment.md"


def test_every_option_of_the_deployment_page_exists():
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"anchorline serve (.*(?:\\\n.*)*)", text) + re.findall(
        r"^(?:ENTRYPOINT|CMD) .*", text, re.M
    )
    assert len(commands) >= 4
    known = {name.replace("_", "-") for name in inspect.signature(serve).parameters}
    used = set(re.findall(r"--([a-z-]+)", " ".join(commands)))
    assert {"behind-proxy", "user-header", "audit-log", "root-path", "allow-host"} <= used
    assert used <= known


def test_the_limits_of_the_deployment_page_are_the_servers():
    text = PAGE.read_text(encoding="utf-8")
    assert f"{server._READ_SECONDS:g} s, then the connection is closed" in text
