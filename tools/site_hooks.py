"""The hooks that MkDocs calls while it builds the site: they make pages from the code, and links
that work on the site.

Pages of the repository link to files beside `docs/`. A link to a file that becomes a page stays a
link; of any other link, only the text stays.
"""

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from reference import api_page, json_pages, options_page

ROOT = Path(__file__).resolve().parents[1]

# Pages that lie beside `docs/` in the repository.
BESIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}

_SEARCH = 'data-md-component="search" aria-label="Search"'
_CODE = re.compile(r"`[^`]+`")
# Code within a line: blocks of code have a `pre`, and a mark of the highlighter, before it.
_INLINE = re.compile(r"(?<!<pre>)(?<!</span>)<code>([^<]*)</code>")
_SHORT = 22
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made while the site is built."""
    made = {"reference/options.md": options_page(), "reference/api.md": api_page(), **json_pages()}
    made |= {name: (ROOT / file).read_text(encoding="utf-8") for file, name in BESIDE.items()}
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page whose links lead to pages of the site, or are plain text."""
    inside = page.file.src_uri not in BESIDE.values()
    text = "\n".join(map(_bare_pipes, markdown.split("\n")))
    return _LINK.sub(lambda found: _settle(found[1], found[2], inside=inside), text)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page whose tables have no empty heading, and whose options do not break at hyphens."""
    whole = _INLINE.sub(lambda found: f"<code>{_hold(found[1])}</code>", html)
    return whole.replace("<th></th>", "<td></td>")


def _hold(code: str) -> str:
    """Keeps code with hyphens on one line where its words are short."""
    return " ".join(
        f'<span class="word">{word}</span>' if "-" in word and len(word) <= _SHORT else word
        for word in code.split(" ")
    )


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    return _name_search(output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Gives the page for dead links a search box, although it is no page of its own."""
    return _name_search(output_content)


def _name_search(output: str) -> str:
    """Gives the search of a page a name for screen readers."""
    return output.replace('data-md-component="search" role="dialog"', f'{_SEARCH} role="dialog"')


def _bare_pipes(line: str) -> str:
    """Unescapes the pipes in the code of a table row: only GitHub wants them escaped."""
    if not line.startswith("|"):
        return line
    return _CODE.sub(lambda found: found[0].replace("\\|", "|"), line)


def _settle(words: str, link: str, *, inside: bool) -> str:
    """Adapts a link to the site; `inside` is False for a page that lies beside `docs/`."""
    place, _, anchor = link.partition("#")
    if not place:
        return f"[{words}]({link})"
    outward = place.startswith("../") if inside else not place.startswith("docs/")
    name = place.removeprefix("../" if inside else "docs/").removeprefix("./")
    if outward and name not in BESIDE:
        return words
    target = BESIDE.get(name, name)
    return f"[{words}]({target}#{anchor})" if anchor else f"[{words}]({target})"
