"""Text, terminal tables, HTML pages and pictures of finished explanations; nothing here queries a model or solves.

May import: errors, guarantees, optimize, spaces, search, result. The public functions are in `text`, `terminal`,
`html` and `plot`, which are imported by name because `plot` loads matplotlib when one of its functions is called.
"""
