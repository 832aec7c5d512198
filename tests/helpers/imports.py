"""Which modules of anchorline a module imports."""

import ast


def imports_of(tree):
    """(line, dotted name inside anchorline) of every import of anchorline, wherever it stands."""
    return _imports_in(ast.walk(tree))


def later_imports_of(tree):
    """The same of imports inside functions, which are carried out when these are called."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return _imports_in(node for function in functions for node in ast.walk(function))


def _imports_in(nodes):
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write absolute imports"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, inside = name.partition(".")
            if package == "anchorline":
                yield node.lineno, inside
