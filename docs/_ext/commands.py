"""The command line's own help, as the reference of the command line."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_WIDTH = 100


class CommandHelp(SphinxDirective):
    """What ``anchorline --help`` prints, then a section for each command."""

    def run(self) -> list[nodes.Node]:
        """Ask the application itself, so that nothing here can grow old."""
        from typer.main import get_command  # noqa: PLC0415  an extra

        from anchorline.cli.app import app  # noqa: PLC0415

        command: Any = get_command(app)
        settings: dict[str, Any] = {"terminal_width": _WIDTH, "max_content_width": _WIDTH}
        top = command.make_context("anchorline", [], resilient_parsing=True, **settings)
        shown: list[nodes.Node] = [self._literal(command.get_help(top))]
        for name in command.list_commands(top):
            below = command.get_command(top, name)
            context = below.make_context(name, [], parent=top, resilient_parsing=True, **settings)
            section = nodes.section(ids=[f"anchorline-{name}"], names=[f"anchorline {name}"])
            section += nodes.title("", "", nodes.literal("", f"anchorline {name}"))
            section += self._literal(below.get_help(context))
            self.state.document.note_explicit_target(section)
            shown.append(section)
        return shown

    @staticmethod
    def _literal(text: str) -> nodes.literal_block:
        return nodes.literal_block(text, text, language="text")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register ``command-help``."""
    app.add_directive("command-help", CommandHelp)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
