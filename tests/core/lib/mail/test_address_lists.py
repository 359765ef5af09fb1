"""Address lists: as a strict reader of the grammar reads them, in linear time, and in doubt as mail programs do."""

import time

from hypothesis import example, given
from hypothesis import strategies as st

from core.lib.mail.address_lists import AddressList, Mailbox, decode_address_list, read_address_list
from tests.core.lib.mail.strict_addresses import SPACE, read_strictly
from tests.rows import each

# By the text: addresses with their names.
EXACT = {
    "ada@bank.example": [("ada@bank.example", "")],
    "Ada L. <ada@bank.example>": [("ada@bank.example", "Ada L.")],
    '"Lovelace, Ada" <ada@bank.example>': [("ada@bank.example", "Lovelace, Ada")],
    r'"A \"B\" \\ <x@evil.example>" <ada@bank.example>': [("ada@bank.example", r'A "B" \ <x@evil.example>')],
    'Ada "the Countess"  of "L." <ada@bank.example>': [("ada@bank.example", "Ada the Countess of L.")],
    "ada@bank.example (Ada (the \\) Countess) L.)": [("ada@bank.example", "Ada (the ) Countess) L.")],
    "<ada@bank.example> (Ada)": [("ada@bank.example", "Ada")],
    "(<x@evil.example>) Ada (Ops) <ada@bank.example>": [("ada@bank.example", "Ada")],
    "ada (a) . (b) l @ (c) bank . example (d)": [("ada.l@bank.example", "a b c d")],
    "A <@a.example,@b.example:ada@bank.example>": [("ada@bank.example", "A")],
    "A <,@a.example,,:ada@bank.example>, b@c.example": [("ada@bank.example", "A"), ("b@c.example", "")],
    "ada@[IPv6:2001:db8::1]": [("ada@[IPv6:2001:db8::1]", "")],
    "Team: a@b.example, , C <c@d.example>;, e@f.example": [
        ("a@b.example", ""),
        ("c@d.example", "C"),
        ("e@f.example", ""),
    ],
    "undisclosed-recipients:;": [],
    ",, ada@bank.example ,": [("ada@bank.example", "")],
    '"ada"@bank.example': [("ada@bank.example", "")],
    '"ada"."l\\."@bank.example': [('"ada.l."@bank.example', "")],
    '"x@evil.example"@bank.example': [('"x@evil.example"@bank.example', "")],
    r'"a\"b\\"@bank.example': [(r'"a\"b\\"@bank.example', "")],
    "=?utf-8?Q?=3Cx=40evil=2Eexample=3E?= <ada@bank.example>": [("ada@bank.example", "<x@evil.example>")],
    "=?utf-8?q?Ad=C3?= =?utf-8?q?=A4?= <ada@bank.example>": [("ada@bank.example", "Ad\u00e4")],
    '"=?utf-8?q?Ad=C3=A4?=" <ada@bank.example>': [("ada@bank.example", "Ad\u00e4")],
    "ada@bank.example (=?utf-8?q?Ad=C3=A4?=)": [("ada@bank.example", "Ad\u00e4")],
    "Zo\u00eb <zo\u00eb@b\u00fccher.example>": [("zo\u00eb@b\u00fccher.example", "Zo\u00eb")],
    # Beyond the grammar, where all programs agree.
    "[Jira] Ada <ada@bank.example>": [("ada@bank.example", "[Jira] Ada")],
    ".ada..l.@bank.example": [(".ada..l.@bank.example", "")],
    "Ada@Bank.example <ada@bank.example>": [("ada@bank.example", "Ada@Bank.example")],
    "Ada\u200d\U0001f469 <ada@bank.example>": [("ada@bank.example", "Ada \U0001f469")],
}
# Read as most mail programs do.
AMBIGUOUS = {
    "CEO <ceo@victim.example> <x@evil.example>": [("x@evil.example", "CEO <ceo@victim.example>")],
    "<<Sales>> <sales@bank.example>": [("sales@bank.example", "<<Sales>>")],
    "<b>Ada</b> <ada@bank.example>": [("ada@bank.example", "<b>Ada</b>")],
    "<<ada@bank.example>>": [("ada@bank.example", "")],
    "x@evil.example <ada@bank.example>": [("ada@bank.example", "x@evil.example")],
    "Ada @ Home <ada@bank.example>": [("ada@bank.example", "Ada @ Home")],
    "Lovelace, Ada <ada@bank.example>": [("ada@bank.example", "Ada")],
    "Alerts: Prod <ada@bank.example>": [("ada@bank.example", "Prod")],
    "<ada@bank.example> Ada": [("ada@bank.example", "")],
    "Ada <ada@bank.example": [("ada@bank.example", "Ada")],
    "Ada <ada@bank.example, <b@c.example>": [("ada@bank.example", "Ada"), ("b@c.example", "")],
    "Ada ada@bank.example": [("ada@bank.example", "Ada")],
    "<mailto:ada@bank.example>": [("ada@bank.example", "")],
    "a@b.example; c@d.example": [("a@b.example", ""), ("c@d.example", "")],
    "x@evil.example: ada@bank.example;": [("x@evil.example", ""), ("ada@bank.example", "")],
    "a@x.example@bank.example": [],
    "a@@bank.example": [("a@bank.example", "")],
    "<a b@bank.example>": [],
    "<a@bank. example b>": [],
    "'ada@bank.example'": [("ada@bank.example", "")],
    "[ada@bank.example]": [("ada@bank.example", "")],
    "<mailto:ada@bank.example?subject=x>": [("ada@bank.example", "")],
    "a@'": [],
    "ada@bank.example.": [("ada@bank.example", "")],
    "=?utf-8?Q?Lovelace,_Ada?= <ada@bank.example>": [("ada@bank.example", "Lovelace, Ada")],
    "Ada\x00 <ada@bank.example>": [("ada@bank.example", "Ada")],
    "nobody": [],
    '"<ada@bank.example>"': [],
    'Ada <ada@"bank.example">': [],
    '"Ada <ada@bank.example>': [],
    "Ada ( <ada@bank.example>": [],
    "Ada <>": [],
    "@": [],
    # Cut, it would be the address of another domain.
    f"{'a' * 305}@bank.example.evil.example": [],
}
PIECES = (
    *'<>()"\\,;:@.[] \t', "a", "Ada", "x@evil.example", "<x@evil.example>", "ada@bank.example", "<ada@bank.example>",
    '"ada"', "(b)", "[192.0.2.1]", "=?utf-8?Q?=3Cx=40evil.example=3E?=", "=?utf-8?Q?a,b?=", "=?utf-8?Q?x?=",
    "\u00fc", "\u200b", "\x00", "\r",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=40)
# Texts of one of these alone, and after an address.
UNITS = (
    "(", "()", "a(", "\\(", "<", "<a@b", "<@a,", '"', '""', '"\\', "\\", "@[", "@[a", ".", "a.", "a..@", ",", ";", ":",
    "a:;", "w ", "a@b ", "<a@b> ", "=?u?q?", "=?a?q?" + "x" * 900,
)  # fmt: skip


def read(text: str) -> list[tuple[str, str]]:
    return [(mailbox.email, mailbox.name) for mailbox in read_address_list(text).mailboxes]


def parts_of(address: str) -> tuple[str, str]:
    """Return local part, without quotes, and domain."""
    local, _, domain = address.rpartition("@")
    quoted = iter(local[1:-1])
    return ("".join(next(quoted) if one == "\\" else one for one in quoted) if local[:1] == '"' else local), domain


def outside(text: str) -> str:
    """Return a text without comments, quoted strings and white space."""
    kept, depth, is_quoted, characters = [], 0, False, iter(text)
    for one in characters:
        if one == "\\" and (depth or is_quoted):
            next(characters, None)
        elif one == '"' and not depth:
            is_quoted = not is_quoted
        elif one in "()" and not is_quoted:
            depth = max(depth + (1 if one == "(" else -1), 0)
        elif not depth and not is_quoted and one not in SPACE and one.isprintable():
            kept.append(one)
    return "".join(kept)


@each("text", EXACT)
def test_a_list_of_the_grammar_is_exact(text):
    assert read(text) == EXACT[text]
    assert read_address_list(text).is_exact
    assert [parts_of(address) for address, _ in EXACT[text]] == read_strictly(text)


def test_an_address_in_apostrophes_is_a_name_of_that_address_alone():
    for text, is_exact in (("'ada@b.example' <ada@b.example>", True), ("'x@y.example' <ada@b.example>", False)):
        found = read_address_list(text)
        assert ([one.email for one in found.mailboxes], found.is_exact) == (["ada@b.example"], is_exact)


@each("text", AMBIGUOUS)
def test_another_list_is_not_exact_and_is_read_as_mail_programs_do(text):
    assert read(text) == AMBIGUOUS[text]
    assert not read_address_list(text).is_exact


@given(texts)
@example('""@a')
@example("a@b(c")
def test_an_exact_list_has_the_addresses_of_a_strict_reader(text):
    found, strict = read_address_list(text), read_strictly(text)
    addresses = [parts_of(mailbox.email) for mailbox in found.mailboxes]
    assert addresses == strict or not (found.is_exact or len(strict) == 1)


@given(texts)
def test_no_address_stands_only_within_quotes_or_comments(text):
    for mailbox in read_address_list(text).mailboxes:
        local, domain = parts_of(mailbox.email)
        kept = outside(text)
        assert domain.replace(" ", "") in kept
        assert f"{local}@{domain}".replace(" ", "") in kept or '"' in text or "@." in kept or "[" in text


@given(texts)
def test_a_decoded_list_has_the_same_addresses(text):
    decoded = decode_address_list(text)
    assert [email for email, _ in read(decoded)] == [email for email, _ in read(text)]


def test_a_decoded_word_is_quoted_where_it_would_have_structure():
    word = "=?utf-8?Q?=22=29_=3Cx=40evil.example=3E?="
    assert decode_address_list(f"{word} L <a@b.example>") == '"\\") <x@evil.example> L" <a@b.example>'
    assert decode_address_list(f'"{word}" <a@b.example>') == '"\\") <x@evil.example>" <a@b.example>'
    assert decode_address_list(f"a@b.example ({word})") == 'a@b.example ("\\) <x@evil.example>)'
    assert (
        decode_address_list("=?utf-8?q?Ad=C3=A4?=  L <a@b.example>,b@c.example")
        == "Ad\u00e4 L <a@b.example>,b@c.example"
    )
    assert decode_address_list('"a"  <a@b.example>') == '"a"  <a@b.example>'


def test_a_list_has_bounds():
    many = ", ".join(f"a{number}@b.example" for number in range(201))
    found = read_address_list(many)
    assert (len(found.mailboxes), found.is_exact) == (200, False)
    cut = read_address_list("ada@bank.example" + " " * 64 * 1024 + ", x@evil.example")
    assert cut == AddressList([Mailbox("ada@bank.example", "")], is_exact=False, is_complete=False)


@each("unit", UNITS)
def test_a_hostile_list_is_read_in_linear_time(unit):
    short, long = ("ada@bank.example " + unit * (size // len(unit)) for size in (1024, 4 * 1024))
    # Interleaved, so that other load slows down both. 16 in quadratic time.
    quick, slow = map(min, zip(*[(seconds(short), seconds(long)) for _ in range(3)], strict=True))
    assert slow < 6.7 * quick + 0.02


def seconds(text: str) -> float:
    start = time.thread_time()
    read_address_list(text)
    decode_address_list(f"{text[:-20]} =?u?q?x?=")
    return time.thread_time() - start
