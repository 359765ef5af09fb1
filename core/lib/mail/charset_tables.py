"""Tables of charsets: what the Encoding standard of the WHATWG and mail have beside Python's codecs.

Names are compared without case and punctuation. A row has only those that Python does not know.
"""

# Codecs whose names are used for a larger one, as the standard has it. ASCII is a charset that says nothing.
SUPERSETS = {
    "ascii": "", "utf-8-sig": "utf-8", "utf-16": "utf-16-le", "iso8859-1": "cp1252", "iso8859-9": "cp1254",
    "iso8859-11": "cp874", "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
    "euc_kr": "cp949", "big5": "big5hkscs", "cp950": "big5hkscs", "iso2022_jp": "iso2022_jp_ext",
    "iso2022_jp_1": "iso2022_jp_ext",
}  # fmt: skip

# The standard's labels (https://encoding.spec.whatwg.org/#names-and-labels).
STANDARD_LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "iso8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i",
    "iso8859-7": "sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i logical visual",
    "iso8859-15": "csisolatin9",
    "koi8-r": "koi koi8",
    "koi8-u": "koi8-ru",
    "mac-roman": "csmacintosh mac x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "dos-874 windows-874",
    "cp932": "windows-31j x-sjis",
    "cp949": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 windows-949",
    "gb18030": "csgb2312 x-gbk",
    "big5hkscs": "cn-big5 x-x-big5",
    "euc_jp": "cseucpkdfmtjapanese x-euc-jp",
    "utf-16-be": "unicodefffe",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff",
    "x-user-defined": "x-user-defined",
}
# Names in mail: of Java and Windows, numbers of Windows' charsets (136) and code pages, misspelt ones.
MAIL_LABELS = {
    # Without its script.
    "ascii": "x-mac",
    "utf-8": "65001 utf8mb3 utf8mb4 utf-8-mac al32utf8",
    "utf-7": "65000 unicode-1-1-utf-7",
    "cp437": "oem",
    "cp874": "222",
    "cp932": "128 ms-kanji shift-jis-2022 x-ms-cp932 x-mac-japanese csWindows31J",
    "cp949": "129 ks_c_5601 ksc_5601-1987 x-windows-949 x-mac-korean",
    "gb18030": "134 54936 gb18030-2000 gb18030-2022 x-mac-chinesesimp x-mswin-936",
    "big5hkscs": "136 x-big5 x-mac-chinesetrad x-windows-950",
    "cp1250": "238",
    "cp1251": "204 ansi1251",
    "cp1252": "28591 ansi x-ansi latin-1-windows iso-8859-1-windows-3.1-latin-1",
    "cp1253": "161",
    "cp1254": "162 28599",
    "cp1255": "177",
    "cp1256": "178",
    "cp1257": "186",
    "cp1258": "163",
    "iso8859-2": "28592",
    "iso8859-3": "28593",
    "iso8859-4": "28594",
    "iso8859-5": "28595",
    "iso8859-6": "28596",
    "iso8859-7": "28597",
    "iso8859-8": "28598 38598",
    "iso8859-13": "28603",
    "iso8859-15": "28605 latin0",
    "koi8-r": "20866",
    "koi8-u": "21866",
    "mac-latin2": "x-mac-ce x-mac-centraleurroman",
    "mac-iceland": "x-mac-icelandic",
    "euc_jp": "51932 20932 eucjpms eucjp-win cp51932",
    "iso2022_jp_ext": "50220 50221 50222 cp50220 cp50221 cp50222 iso-2022-jp-ms x-windows-iso2022jp jis7 jis",
    "iso2022_kr": "50225",
}

# Bytes of charsets of one byte that the standard reads otherwise.
SINGLE_BYTES = {"koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"}, "cp1255": {0xCA: "\u05ba"}}
# Characters of Python and those of the standard: of Windows, and of later versions in place of private use.
JAPANESE = ("\u301c\u2016\u2212\xa2\xa3\xac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2")
CHARACTERS = {
    "euc_jp": JAPANESE,
    "iso2022_jp_ext": JAPANESE,
    "iso2022_jp_2": JAPANESE,
    "cp932": ("\uf8f0\uf8f1\uf8f2\uf8f3", "\ufffd\ufffd\ufffd\ufffd"),
    "gb18030": (
        (
            "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue7c7"
            "\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864"
        ),
        (
            "\u3000\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19\u1e3f"
            "\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb"
        ),
    ),
    "big5hkscs": (
        "\u2022\uff64\u203e\u223c\u2641\u2609\xa5\xa2\xa3",
        "\u2027\ufe51\xaf\uff5e\u2295\u2299\uffe5\uffe0\uffe1",
    ),
}
# Characters of Big5 that Python does not have: of HKSCS-2008, control pictures and the euro sign of ETEN.
BIG5_BYTES = bytes.fromhex(
    "877a 877b 877c 877d 877e 87a1 87a2 87a3 87a4 87a5 87a6 87a7 87a8 87a9 87aa 87ab 87ac 87ad 87ae 87af 87b0 87b1 "
    "87b2 87b3 87b4 87b5 87b6 87b7 87b8 87b9 87ba 87bb 87bc 87bd 87be 87bf 87c0 87c1 87c2 87c3 87c4 87c5 87c6 87c7 "
    "87c8 87c9 87ca 87cb 87cc 87cd 87ce 87cf 87d0 87d1 87d2 87d3 87d4 87d5 87d6 87d7 87d8 87d9 87da 87db 87dc 87dd "
    "87de 87df 8e69 8e6f 8e7e 8eab 8eb4 8ecd 8ed0 8f57 8f69 8f6e 8fcb 8fcc 8ffe 906d 907a 90dc 90f1 91bf 9244 92af "
    "92b0 92b1 92b2 92c8 92d1 9447 94ca 95d9 9644 96ed 96fc 9b76 9b78 9b7b 9bc6 9bde 9bec 9bf6 9c42 9c53 9c62 9c68 "
    "9c6b 9c77 9cbc 9cbd 9cd0 9d57 9d5a 9dc4 9ea9 9eef 9efd 9f60 9f66 9fcb 9fd8 a063 a077 a0d5 a0df a0e4 a3c0 a3c1 "
    "a3c2 a3c3 a3c4 a3c5 a3c6 a3c7 a3c8 a3c9 a3ca a3cb a3cc a3cd a3ce a3cf a3d0 a3d1 a3d2 a3d3 a3d4 a3d5 a3d6 a3d7 "
    "a3d8 a3d9 a3da a3db a3dc a3dd a3de a3df a3e0 a3e1 c6cf c6d3 c6d5 c6d7 c6de c6df fa5f fa66 fabd fac5 fad5 fb48 "
    "fbb8 fbf3 fbf9 fc4f fc6c fcb9 fce2 fcf1 fdb7 fdb8 fdbb fdf1 fe52 fe6f feaa fedd "
)
BIG5_CHARACTERS = (
    "㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆㓦珄𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏"
    "䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋箸簆糎緒縝者耨菁蒨萏覦覩起都銹靜響鼖蔃兙兛兝兞鍮瑹浧禛邗"
    "靝瀞嬨爁矗纇駖釔惞澶輶侻營鄄鷰菏尐秣婧輋筑拐恢痹汊鬮鼗僭弌蠏拎瑨煢牐␀␁␂␃␄␅␆␇␈␉␊␋␌␍"
    "␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟␡€廴无癶隶〃仝倩偽包卄卿嘅婷幵廐彘悤撐晴杞沜渝港煮猪瑜瓩砉"
)
BIG5 = {BIG5_BYTES[2 * number :][:2]: character for number, character in enumerate(BIG5_CHARACTERS)}
