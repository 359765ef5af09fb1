"""Realistic emails for tests. README.md lists the purpose of each file."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

SUBJECTS = {
    "welcome": "Good to have you, Zoë",
    "password_reset": "Choose a new password",
    "receipt": "Your receipt RE-2025-03118 from Tännbaum & Söhne",
    "shipping_ja": "【亀の子陶房】ご注文の商品を発送しました",
    "newsletter_zh": "拾页书店三月书讯 · 在屋檐下读《苔藓笔记》",
    "order_ar": "تأكيد طلبك رقم ٤٥٠٢١ من متجر الياسمين",
    "booking_hi": "आपकी यात्रा की पुष्टि: दिल्ली से देहरादून, १८ मार्च",
    "reminder_th": "แจ้งเตือนนัดหมายวันพรุ่งนี้เวลา ๑๐:๓๐ น.",
    "celebration_emoji": "🎉 10 000 steps! 👩🏾‍🚀 The 🦦 are proud of you",
    "digest_large": "Slack Water: everything from March",
    "alert_one_line": "[Beacon] 10 alerts in the last hour (production)",
    "statement_crlf": "Account statement, February",
    "awkward_lines": "From the minutes: =?utf-8?q?=46rom?= Edna",
    "invite_dark_mode": "Ravi invited you to “Night Kitchen”",
}


@dataclass(frozen=True)
class Email:
    name: str
    subject: str
    html: str


def emails() -> list[Email]:
    """Return the corpus in the order of SUBJECTS, with the line ends of the files."""
    return [Email(name, subject, _html_of(name)) for name, subject in SUBJECTS.items()]


def _html_of(name: str) -> str:
    # Path.read_text() has no `newline` before Python 3.13 and would convert CRLF to LF.
    return (HERE / f"{name}.html").read_bytes().decode("utf-8")
