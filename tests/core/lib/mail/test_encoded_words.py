"""Encoded words of many programs, which mail programs decode, and texts that only look like them."""

import time

from core.lib.mail.encoded_words import decode_words
from tests.rows import each

WORDS = [
    # Blanks and question marks in Q, and what is or is not an end.
    ("=?utf-8?Q?Best=C3=A4tigung Ihrer Bestellung?=", "Bestätigung Ihrer Bestellung"),
    ("=?utf-8?q?_a_ b\t?=", " a  b\t"),
    ("=?UTF-8?Q?Caf=C3=A9_this_week?_[ask]?=", "Café this week? [ask]"), ("=?utf-8?q?ok??=", "ok?"),
    ("=?utf-8?q????=", "??"),
    ("=?ISO-8859-1?Q?mailorder news / LP pr?=\t =?ISO-8859-1?Q?e-order?=", "mailorder news / LP pre-order"),
    ("=?utf-8?Q?Really?=3F yes?=", "Really?? yes"), ("=?utf-8?Q?Hi?=20 apples", "Hi20 apples"),
    ("=?utf-8?q?x=?= y", "x= y"),
    ("=?utf-8?Q?a?=20=?utf-8?Q?b?=", "a20b"), ("=?utf-8?q?=?=", "="), ("=?utf-8?q?a=b=4=zz=3d==3D?=", "a=b=4=zz==="),
    ("=?utf-8?q?a=3D?=", "a="), ("=?utf-8?Q??=", ""), ("a =?utf-8?B??= b", "a  b"),
    # Any length.
    (f"=?utf-8?Q?{'=C3=A4' * 500}?=", "ä" * 500), (f"=?utf-8?b?{'w6TDpMOk' * 500}?=", "äää" * 500),
    # B without padding, with blanks, and with padding within.
    ("=?utf-8?B?w6Q?=", "ä"), ("=?utf-8?B?w6Q?= =?utf-8?B?w6Q?=", "ää"), ("=?utf-8?B?w6 Q=\t?=", "ä"),
    ("=?utf-8?B?w6Q=====?=", "ä"),
    ("=?utf-8?b?YQ==Yg==?=", "ab"), ("=?utf-8?B?w6TDp?=", "ä\ufffd"),
    # White space between words, words beside text, and characters that two words share.
    ("a =?utf-8?q?b?= c =?utf-8?q?d?=  =?utf-8?q?e?=f", "a b c def"), ("(=?utf-8?q?a?=)", "(a)"),
    ("x=?utf-8?q?a?=y", "xay"),
    ("=?utf-8?Q?a?==?utf-8?Q?b?=", "ab"), ("=?utf-8?Q?=C3?=\r\n =?utf-8?B?pA==?=", "ä"),
    ("=?utf-8?Q?=C3?==?UTF8?Q?=A4?=", "ä"),
    ("=?gb2312?B?xA==?= =?gbk?B?4w==?=", "你"), ("=?utf-8?q?=C3?= =?iso-8859-1?q?=E4?=", "Ãä"),
    ("=?utf-8?q?=C3=A4=C3?= x", "ä\ufffd x"),
    ("=?ISO-2022-JP?B?GyRCRnwbKEI=?= =?ISO-2022-JP?B?GyRCS1wbKEI=?=", "日本"),
    # Charsets: the larger ones, languages (RFC 2231, section 5), unknown ones, byte-order marks.
    ("=?gb2312?B?6UY=?=", "镕"), ("=?shift_jis?B?h0CHig==?=", "①㈱"), ("=?ISO-2022-JP?B?GyRCLSEtIhsoQg==?=", "①②"),
    ("=?iso-8859-1?Q?=805.4bn?=", "€5.4bn"), ("=?utf-8*en?Q?x=C3=A4?=", "xä"), ("=?ks_c_5601-1987*ko?B?gUE=?=", "갂"),
    ("=?x-unknown?Q?=E9 =C3=A9?=", "\ufffd é"), ("=?x-unknown?Q?caf=E9?=", "café"), ("=?us-ascii?Q?=E9?=", "é"),
    ('=?"utf-8"?Q?=C3=A4?=', "ä"), ("=?UTF-8?Q?=EF=BB=BFHi?=", "Hi"), ("=?windows-31j?q?=87@?=", "①"),
    ("=?utf-7?Q?+AOQ-?=", "ä"),
    ("=?us-ascii?B?GyRCRnwbKEI=?=", "日"),
    # Octets that are not encoded.
    ("=?utf-8?Q?Grüße?= ü", "Grüße ü"), ("=?iso-8859-1?Q?Grüße =E4?=", "Grüße ä"),
    ("=?gb2312?Q?\u00c4\u00e3?=", "你"), ("ü=?utf-8?q?a?=", "üa"),
    ("=?gb2312?Q?日本?=", "日本"), ("\x1b$B$*@$OC\x1b(B ok", "お世話 ok"), ("\x1b[1m", "\x1b[1m"),
    # No words.
    ("=?utf-8?X?a?=", "=?utf-8?X?a?="), ("=?utf-8?Q?a", "=?utf-8?Q?a"), ("=?utf-8?B?!!?=", "=?utf-8?B?!!?="),
    ("=??q?a?=", "=??q?a?="),
    ("a =? b ?= c", "a =? b ?= c"), ("=?utf-8?q?abc =?utf-8?q?d?=", "=?utf-8?q?abc d"),
    ("=?utf 8?q?a?=", "=?utf 8?q?a?="),
    ("x =?utf-8?X?a?= =?utf-8?q?b?=", "x =?utf-8?X?a?= b"), ("1 =?= 2", "1 =?= 2"),
]  # fmt: skip


def test_words_are_read_as_mail_programs_read_them():
    wrong = {value: text for value, expected in WORDS if (text := decode_words(value)) != expected}
    assert wrong == {}


@each("unit", [
    "=?", "=?utf-8?q?", "=?utf-8?b?", "=?utf-8?q?a?=", "=?utf-8?q?=C3?= "
    , "?=20", "?=", "=?a?q??=20", "=?=", "?", "=", " ",
    "=?utf-8?q?a?= =?koi8-r?q?a?= ", "=?gb2312?q?=ff?=", "=?utf-8?b?A=?=", "=?utf-8?q?a?=20 ",
])  # fmt: skip
def test_a_long_value_takes_linear_time(unit):
    for start in ("", "=?utf-8?q?", "=?gb2312?b?"):
        began = time.thread_time()
        decode_words(start + unit * (100_000 // len(unit)))
        assert time.thread_time() - began < 0.5, start
