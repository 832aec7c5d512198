"""The directive ``command-help``: the help texts of the command line, as its reference."""

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_WIDTH = 100


class CommandHelp(SphinxDirective):
    """The text that ``anchorline --help`` prints, and one section per command."""

    def run(self) -> list[nodes.Node]:
        """Return the help texts, taken from the application itself so that they are always up to date."""
        from typer.main import get_command  # noqa: PLC0415  typer is an extra

        from anchorline.cli.app import app  # noqa: PLC0415

        command: Any = get_command(app)
        settings: dict[str, Any] = {"terminal_width": _WIDTH, "max_content_width": _WIDTH}
        top = command.make_context("anchorline", [], resilient_parsing=True, **settings)
        help_text: list[nodes.Node] = [self._literal(command.get_help(top))]
        return [*help_text, *self._sections(command, top, settings)]

    def _sections(self, group: Any, above: Any, settings: dict[str, Any]) -> Iterator[nodes.Node]:
        """Yield one section per command of a group, including the commands of its subgroups."""
        for name in group.list_commands(above):
            below = group.get_command(above, name)
            context = below.make_context(name, [], parent=above, resilient_parsing=True, **settings)
            title = context.command_path
            section = nodes.section(ids=[title.replace(" ", "-")], names=[title])
            section += nodes.title("", "", nodes.literal("", title))
            section += self._literal(below.get_help(context))
            self.state.document.note_explicit_target(section)
            yield section
            if hasattr(below, "list_commands"):
                yield from self._sections(below, context, settings)

    @staticmethod
    def _literal(text: str) -> nodes.literal_block:
        return nodes.literal_block(text, text, language="text")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register ``command-help``."""
    app.add_directive("command-help", CommandHelp)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
