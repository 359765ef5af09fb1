"""Tables of refused and allowed connection targets.

The first and last addresses of each refused network are in one table, their neighbours outside in the other.
"""


def _words(text: str) -> tuple[str, ...]:
    """Split a table into its entries; lines that begin with # are headings."""
    rows = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return tuple(" ".join(rows).split())


REFUSED_ADDRESSES = _words("""
    # this network, which connects to this machine
    0.0.0.0 0.0.0.1 0.255.255.255
    # loopback
    127.0.0.0 127.0.0.1 127.0.0.53 127.1.2.3 127.255.255.255
    # private
    10.0.0.0 10.0.0.1 10.255.255.255 172.16.0.0 172.17.0.1 172.31.255.255 192.168.0.0
    192.168.1.1 192.168.255.255
    # carrier NAT and a cloud inside it
    100.64.0.0 100.100.100.100 100.100.100.200 100.127.255.255
    # link local and the clouds
    169.254.0.0 169.254.169.123 169.254.169.253 169.254.169.254 169.254.170.2
    169.254.170.23 169.254.255.255 168.63.129.16 192.0.0.0 192.0.0.8 192.0.0.170
    192.0.0.192 192.0.0.255
    # documentation, sinkholes, relays, benchmarks
    192.0.2.0 192.0.2.255 192.31.196.0 192.31.196.255 192.52.193.0 192.52.193.255
    192.88.99.0 192.88.99.1 192.88.99.255 192.175.48.0 192.175.48.255 198.18.0.0
    198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255
    # multicast, reserved, broadcast
    224.0.0.1 224.0.0.251 232.1.1.1 239.255.255.250 239.255.255.255 240.0.0.0 240.0.0.1
    250.1.2.3 255.255.255.254 255.255.255.255
    # IPv6: unspecified, loopback, the rest of the lowest block
    :: ::1 ::2 ::ffff
    # v4-compatible
    ::127.0.0.1 ::10.0.0.1 ::8.8.8.8 ::169.254.169.254
    # v4-mapped
    ::ffff:0.0.0.0 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.1.2.3 ::ffff:172.20.0.5
    ::ffff:192.168.0.10 ::ffff:169.254.169.254 ::ffff:100.100.100.200 ::ffff:168.63.129.16
    ::ffff:224.0.0.1 0:0:0:0:0:ffff:7f00:1
    # translated by SIIT
    ::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8
    # NAT64
    64:ff9b::7f00:1 64:ff9b::169.254.169.254 64:ff9b::8.8.8.8 64:ff9b::ffff:ffff
    64:ff9b:0:0:1::1 64:ff9b:1::1 64:ff9b:1::a00:1 64:ff9b:1:ffff:ffff:ffff:ffff:ffff
    # discard, dummy
    100:: 100::1 100:0:0:1::1
    # protocol assignments: Teredo, anycasts, benchmarking, ORCHID, DRIP
    2001:: 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2
    2001:0:ffff:ffff:ffff:ffff:80ff:fffe 2001:1::1 2001:1::2 2001:2::1 2001:3::1
    2001:4:112::1 2001:10::1 2001:20::1 2001:30::1 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
    # documentation
    2001:db8:: 2001:db8::1 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 3fff:: 3fff::1
    3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
    # 6to4
    2002:: 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe::1 2002:808:808::1
    2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
    # sinkhole
    2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff
    # ISATAP under public, private and link-local prefixes
    2a00:1450:4001:81b:0:5efe:7f00:1 2a00:1450:4001:81b:0:5efe:10.0.0.1
    2a00:1450:4001:81b:200:5efe:8.8.8.8 2606:4700::5efe:a9fe:a9fe
    fd12:3456:789a:1::5efe:10.0.0.1 fe80::5efe:10.0.0.1 fe80::200:5efe:8.8.8.8
    # outside global unicast
    200::1 400::1 1000::1 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 4000:: 4000::1 5f00::1
    6000::1 8000::1 a000::1 c000::1 e000::1 f000::1 f800::1
    # unique local and the clouds inside it
    fc00:: fc00::1 fd00::1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254
    fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
    # link local, site local, multicast
    fe00::1 fe80:: fe80::1 fe80::a9fe:a9fe febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff fec0::1
    feff::1 ff00:: ff02::1 ff02::fb ff05::2 ff0e::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
    # a zone selects a local interface
    2606:4700:4700::1111%eth0 fe80::1%1
""")

ALLOWED_ADDRESSES = _words("""
    1.0.0.0 1.1.1.1 8.8.8.8 9.9.9.9 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0
    126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0
    172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0
    192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0
    192.167.255.255 192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0
    198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 ::ffff:8.8.8.8
    ::ffff:100.128.0.0 2000:: 2001:200:: 2001:4860:4860::8888
    2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9::
    2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003:: 2606:4700:4700::1111
    2620:4f:7fff:ffff:ffff:ffff:ffff:ffff 2620:4f:8001:: 2620:fe::fe
    2a00:1450:4001:81b::200e 2a00:1450:4001:81b:100:5efe:808:808
    2a00:1450:4001:81b:5efe:0:808:808 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::
""")

# Hosts that inet_aton(), getaddrinfo() or a browser accept as an address, and internal names.
REFUSED_HOSTS = (
    # short forms
    "127.1", "127.0.1", "10.1", "192.168.257", "0", "1",
    # one number
    "2130706433", "02130706433", "3232235521", "2852039166", "4294967295", "4294967296", "134744072",
    # octal
    "0177.0.0.1", "00000177.0.0.1", "0177.0.0.01", "017700000001", "0300.0250.0.1", "010.8.8.8", "08.8.8.8",
    "127.0.0.01",
    # hexadecimal
    "0x7f.0.0.1", "0x7f.1", "0X7F.0.0.1", "0x7f000001", "0x7f.0x0.0x0.0x1", "0xa9fea9fe", "0xa9.254.0251.0376", "0x",
    "127.0.0.0x1",
    # nearly an address
    "127.0.0.1.", "8.8.8.8.", "8.8.8.8..", ".8.8.8.8", "8.8.8", "8.8..8", "1.2.3.4.5", "256.256.256.256", "8.8.8.256",
    "8.8.8.-8", "+8.8.8.8", "8.8.8.8 ", " 8.8.8.8", "8.8.8.8\n", "8.8.8.8\x00", "8.8.8.8/32", "8.8.8.8:443",
    "[8.8.8.8]", "[IPv6:2606:4700:4700::1111]", "foo.0x7f", "example.123",
    # other digits and dots, by code point so that they are distinguishable here
    "\uff11\uff12\uff17.0.0.1", "\uff18.\uff18.\uff18.\uff18", "\u2460\u2461\u2466.0.0.1", "127\u30020\uff0e0\uff611",
    "\U0001d7cf27.0.0.1", "\uff10x7f.1", "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",
    "loc\u00adalhost.example", "exam\u200bple.com", "exam\u200dple.com", "example\u3002com", "fa\u00df.example",
    "\ud800.example",
    # percent signs and zones
    "127.0.0.1%00", "%31%32%37.0.0.1", "example.com%00.example.net", "example%2ecom", "[fe80::1%eth0]",
    "[fe80::1%25eth0]", "fe80::1%1", "[2606:4700:4700::1111%lo]", "[::1%25lo]",
    # brackets and colons
    "[]", "[", "]", "[::1", "::1]", "[[::1]]", "[::1].example.com", "[localhost]", "example.com:443", ":443",
    "[::ffff:0x7f.0.0.1]", "[::ffff:127.1]", "[0:0:0:0:0:0:0:0:1]", "[1::2::3]", "[v1.1]",
    # not a name
    "", ".", "..", "example..com", ".example.com", "example.com..", "exa mple.com", "user@example.com",
    "example.com/path", "example.com\\@example.net", "example.com#", "example.com?x",
    "example.com\r\nHost: example.net", "example.com\t", "-example.com", "example-.com", "exam,ple.com",
    "*.example.com", "(comment)example.com", f"{'a' * 64}.example.com", ".".join(["a" * 62] * 4 + ["com"]),
    "\u00fc" * 60 + ".example.com", "a" * 100_000, "\u00fc" * 100_000,
    # internal names
    "localhost", "LOCALHOST", "LocalHost.", "localhost.localdomain", "foo.localhost", "foo.bar.LOCALHOST.",
    "printer.local", "_smb._tcp.local", "db.internal", "ip-10-0-0-1.ec2.internal", "metadata.google.internal",
    "metadata.google.internal.", "METADATA.GOOGLE.INTERNAL", "home.arpa", "nas.home.arpa", "expyuzz4wqqyqhjn.onion",
    "onion", "postgres", "redis", "metadata", "com", "com.",
)  # fmt: skip

# Literals in normal form of refused addresses.
REFUSED_LITERALS = (
    "127.0.0.1", "169.254.169.254", "[::1]", "::1", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[::FFFF:A9FE:A9FE]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00:ec2::254]",
)  # fmt: skip

ALLOWED_HOSTS = (
    ("example.com", "example.com"), ("EXAMPLE.Com", "example.com"), ("example.com.", "example.com"),
    ("mx1.mail.example.co.uk", "mx1.mail.example.co.uk"), ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ("b\u00fccher.example", "xn--bcher-kva.example"), ("B\u00dcCHER.example.", "xn--bcher-kva.example"),
    ("bu\u0308cher.example", "xn--bcher-kva.example"),
    ("xn--bcher-kva.b\u00fccher.example", "xn--bcher-kva.xn--bcher-kva.example"),
    ("\u4f8b\u3048.\u30c6\u30b9\u30c8", "xn--r8jz45g.xn--zckzah"),
    ("\u043f\u043e\u0447\u0442\u0430.\u0440\u0444", "xn--80a1acny.xn--p1ai"),
    ("\u0645\u062b\u0627\u0644.example", "xn--mgbh0fb.example"),
    # The Kelvin sign is a capital k; Arabic digits are kept and do not form an address.
    ("\u212aelvin.example", "kelvin.example"),
    ("\u0661\u0662\u0667.\u0660.\u0660.\u0661", "xn--9hbcp.xn--8hb.xn--8hb.xn--9hb"),
    ("mail_out.example.com", "mail_out.example.com"), ("a.b", "a.b"), ("3com.example", "3com.example"),
    ("127.0.0.1.example", "127.0.0.1.example"), ("0x7f.1.example", "0x7f.1.example"), ("1e100.net", "1e100.net"),
    ("r3---edge.example.com", "r3---edge.example.com"), ("notlocalhost.example", "notlocalhost.example"),
    ("mylocal.example.com", "mylocal.example.com"), ("local.example.com", "local.example.com"),
    ("internal.example.com", "internal.example.com"), (f"{'a' * 63}.example.com", f"{'a' * 63}.example.com"),
    (".".join(["a" * 61] * 4 + ["abcde"]), ".".join(["a" * 61] * 4 + ["abcde"])),
)  # fmt: skip

ALLOWED_LITERALS = (
    ("8.8.8.8", "8.8.8.8"),
    ("[2001:4860:4860::8888]", "2001:4860:4860::8888"),
    ("[2001:4860:4860:0:0:0:0:8888]", "2001:4860:4860::8888"),
    ("2606:4700:4700::1111", "2606:4700:4700::1111"),
    ("[::ffff:8.8.8.8]", "8.8.8.8"),
)

# Targets that a trial on one machine allows, and targets that it still refuses.
PRIVATE_TARGETS = (
    "127.0.0.1", "127.255.255.255", "10.0.0.1", "172.16.0.1", "192.168.1.10", "[::1]", "[::ffff:127.0.0.1]",
    "[fd12:3456:789a::1]", "localhost", "mailpit", "foo.localhost", "printer.local", "db.internal", "nas.home.arpa",
)  # fmt: skip
ALWAYS_REFUSED_TARGETS = (
    "0.0.0.0", "169.254.169.254", "[::ffff:169.254.169.254]", "100.100.100.200", "168.63.129.16", "224.0.0.1",
    "255.255.255.255", "[::]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00:ec2::254]",
    "[fd20:ce::254]", "[fd12::5efe:169.254.169.254]", "[fe80::1]", "[ff02::1]", "[4000::1]", "metadata.google.internal",
    "hidden.onion", "127.1", "0x7f.1", "2130706433", "[::1%25lo]",
)  # fmt: skip
