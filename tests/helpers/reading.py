"""Reading a page strictly."""

import html.parser
import re

VOID = {"meta", "line", "rect", "circle", "path", "image", "polyline"}  # the last six close themselves
ALLOWED = re.compile(
    "html|head|meta|title|style|body|main|section|details|summary|footer|h1|h2|p|b|span|div|bdi|mark|sup|table"
    "|caption|thead|tbody|tr|th|td|svg|g|defs|pattern|line|rect|circle|path|image|polyline|text"
)


class Read(html.parser.HTMLParser):
    """Reads a page strictly: every element is known, and is closed in order."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.texts, self.attributes, self.tags = [], [], [], []
        self.rows = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert ALLOWED.fullmatch(tag), tag
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td") and self.rows:
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID, tag
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return " ".join("".join(self.texts).split())
