"""Spellings of address fields that try to show another sender than the one that is verified."""

# Each has an address at evil.example, where the sender is verified, or one at bank.example, or both.
HOSTILE = (
    # In quoted strings.
    '"<x@evil.example>" <ada@bank.example>', '"<ada@bank.example>" <x@evil.example>',
    '"ada@bank.example" <x@evil.example>', '"x@evil.example, " <ada@bank.example>',
    r'"a\"<x@evil.example>" <ada@bank.example>', r'"a\\" <x@evil.example>, "b" <ada@bank.example>',
    r'"a\\\" <x@evil.example>" <ada@bank.example>', '"a" "<x@evil.example>" <ada@bank.example>',
    'Ada "<x@evil.example>" Bank <ada@bank.example>', '"(" <x@evil.example> ")" <ada@bank.example>',
    '"a <x@evil.example> <ada@bank.example>', '<ada@bank.example> "<x@evil.example>"', '"x@evil.example"@bank.example',
    '"x@evil.example>"@bank.example', '"ada"@bank.example', '"ada@bank.example\x00"@evil.example', 'ada@"bank.example"',
    'ada@"x@evil.example"', '"Bank: x@evil.example;" <ada@bank.example>',
    # In comments.
    "(<x@evil.example>) <ada@bank.example>", "(x@evil.example) ada@bank.example", "ada@bank.example (x@evil.example)",
    "ada@bank.example (<x@evil.example>)", "ada (x@evil.example) @bank.example", "ada@(x@evil.example)bank.example",
    "Ada (a (b <x@evil.example>) c) <ada@bank.example>", "Ada (\\) <x@evil.example>) <ada@bank.example>",
    "Ada (\\( <x@evil.example>) <ada@bank.example>", "Ada (( <x@evil.example>) <ada@bank.example>",
    'Ada (" ) <x@evil.example> (") <ada@bank.example>', "<ada(<x@evil.example>)@bank.example>", "ada@bank.example (",
    "ada@bank.example )", "(ada@bank.example)",
    # Two addresses, or one within the other.
    "x@evil.example, ada@bank.example", "ada@bank.example, x@evil.example", "x@evil.example ada@bank.example",
    "ada@bank.example x@evil.example", "x@evil.example; ada@bank.example", "x@evil.example <ada@bank.example>",
    "ada@bank.example <x@evil.example>", "<x@evil.example> <ada@bank.example>",
    "Ada <x@evil.example> Bank <ada@bank.example>", "<x@evil.example> ada@bank.example",
    "<<x@evil.example> ada@bank.example>", "<x@evil.example<ada@bank.example>>", "<<Bank>> <x@evil.example>",
    "<b>Bank</b> <x@evil.example>", "<x@evil.example>@bank.example", "x@evil.example@bank.example",
    "ada@bank.example@evil.example", "ada@bank.example>, <x@evil.example", "ada@bank.example\\, x@evil.example",
    "Ada \\<x@evil.example\\> <ada@bank.example>", "x@evil.example\x00 <ada@bank.example>",
    "x@evil.example\x00, ada@bank.example", "ada@bank.example\r <x@evil.example>",
    "ada@bank.example\u200b.evil.example", "ada@bank.example\xa0.evil.example", "ada@bank.example .evil.example",
    "ada@bank.example.", "ada@.bank.example", "ada@bank..example", "[x@evil.example] <ada@bank.example>",
    "ada@[x@evil.example]", "ada@[192.0.2.1]",
    # Routes and groups.
    "<@evil.example:ada@bank.example>", "<@evil.example,@bank.example:ada@bank.example>",
    "<@evil.example>, <ada@bank.example>", "<evil.example:ada@bank.example>", "<x@evil.example:ada@bank.example>",
    "<mailto:ada@bank.example>", "x@evil.example: ada@bank.example;", "<x@evil.example>: ada@bank.example;",
    "Bank: x@evil.example, ada@bank.example;", "Bank: ada@bank.example; x@evil.example",
    "Bank: Other: ada@bank.example;;", "Bank: ada@bank.example", "Bank:; ada@bank.example", "Bank: ada@bank.example;",
    "Bank:;",
    # Encoded words.
    "=?utf-8?Q?=3Cx=40evil=2Eexample=3E?= <ada@bank.example>",
    "=?utf-8?B?PHhAZXZpbC5leGFtcGxlPg==?= <ada@bank.example>", "=?utf-8?Q?ada=40bank=2Eexample?= <x@evil.example>",
    "=?utf-8?Q?x=40evil=2Eexample=2C?= <ada@bank.example>",
    '"=?utf-8?Q?=22_=3Cx=40evil=2Eexample=3E?=" <ada@bank.example>',
    "(=?utf-8?Q?=29_=3Cx=40evil=2Eexample=3E?=) ada@bank.example", "=?utf-8?Q?<x@evil.example>?= <ada@bank.example>",
    "=?utf-8?Q?x@evil.example?= <ada@bank.example>", "=?utf-8?Q?a,?= <ada@bank.example>",
    "=?utf-8?Q?a(?= <x@evil.example> =?utf-8?Q?)?= <ada@bank.example>", "=?utf-8?Q?x?=@bank.example",
    # Nobody.
    "Ada", "Ada, x@evil.example", "x@evil.example, Ada", "<>", "@bank.example", "x@",
)  # fmt: skip
