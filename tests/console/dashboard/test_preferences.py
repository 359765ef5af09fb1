"""Language and time zone of a member: on pages, in forms and in system emails (docs/decisions/0126 and 0133)."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest
from django.test import Client
from django.utils import timezone, translation

from analytics.reputation.rates import ReputationRates
from analytics.reputation.thresholds import rate_thresholds
from console.dashboard.auth.preferences import REGIONS
from console.dashboard.templatetags.local_time import local_time
from console.system_mail import reputation_warnings as warning_emails
from console.system_mail.models import SystemMail
from core.workspaces.models import ApiKey, User
from tests.conftest import PASSWORD
from tests.console.dashboard.conftest import make_email, shown_text, signed_in

pytestmark = pytest.mark.django_db
PREFERENCES = "/dashboard/preferences/"
# Chosen in these tests; summer time in Berlin ended on 25 October and begins on 28 March.
SKIPPED, REPEATED, USUAL = "2027-03-28T02:30", "2027-10-31T02:30", "2027-07-01T12:00"
FUTURE = {"name": "Shop", "scope": "read_only", "lifetime": "custom"}


def prefer(account, **values):
    User.objects.filter(pk=account.owner.pk).update(**values)
    return signed_in(User.objects.get(pk=account.owner.pk))


def language_of_page(response):
    return response.content.decode().partition('<html lang="')[2][:2]


class TestLanguage:
    def test_visitors_see_the_language_of_their_browser(self, client):
        pages = {
            header: client.get("/dashboard/login/", headers={"Accept-Language": header})
            for header in ("de-AT,de;q=0.9", "fr,de;q=0.5", "fr", "en-GB,de;q=0.5", "")
        }

        assert [language_of_page(page) for page in pages.values()] == ["de", "de", "en", "en", "en"]
        assert all("Accept-Language" in page.headers["Vary"] for page in pages.values())

    def test_members_see_their_choice_in_any_browser(self, alice):
        browser = prefer(alice, language="de")

        page = browser.get("/dashboard/emails/", headers={"Accept-Language": "en"})

        assert language_of_page(page) == "de"
        assert "E-Mails" in shown_text(page)

    def test_error_pages_elsewhere_have_the_language_of_the_browser(self, client):
        german, english = (client.get("/nowhere", headers={"Accept-Language": header}) for header in ("de", "fr"))
        assert [language_of_page(page) for page in (german, english)] == ["de", "en"]
        assert "Seite nicht gefunden" in german.text
        assert "Accept-Language" in german.headers["Vary"]

    def test_the_documentation_is_english(self, client):
        page = client.get("/docs/nowhere", headers={"Accept-Language": "de"})
        assert (page.status_code, language_of_page(page)) == (404, "en")

    def test_the_menu_saves_the_language_and_returns_to_the_page(self, client, owner, alice):
        assert owner.post(PREFERENCES, {"language": "xx"}).status_code == 200
        assert User.objects.get(pk=alice.owner.pk).language == ""
        came_from = "http://testserver/dashboard/domains/"
        response = owner.post(PREFERENCES, {"language": "de"}, headers={"Referer": came_from})
        assert response.url == came_from
        assert User.objects.get(pk=alice.owner.pk).language == "de"
        elsewhere = owner.post(PREFERENCES, {"language": "de"}, headers={"Referer": "https://evil.example/"})
        assert elsewhere.url == PREFERENCES
        saved = owner.post(PREFERENCES, {"language": "de", "time_zone": "", "save": "1"}, follow=True)
        assert "Ihre Einstellungen wurden gespeichert." in shown_text(saved)
        assert client.post(PREFERENCES, {"language": "de"}).url.startswith("/dashboard/login/")

    def test_staff_have_preferences_too(self, staff):
        staff.post("/admin/preferences/", {"language": "de", "time_zone": "Europe/Berlin"})

        assert language_of_page(staff.get("/admin/")) == "de"

    def test_the_api_stays_english_after_a_german_page(self, alice, api):
        prefer(alice, language="de").get("/dashboard/")

        problem = api.get("/emails/em_0").json()

        assert (translation.get_language(), problem["title"]) == ("en", "Not found")

    def test_readers_of_emails_see_the_language_of_their_browser(self, client):
        assert 'lang="de"' in client.get("/u/invalid", headers={"Accept-Language": "de"}).content.decode()

    def test_a_page_takes_no_query_for_the_preferences(self, alice, django_assert_num_queries):
        browser = prefer(alice, language="de", time_zone="Europe/Berlin")
        with django_assert_num_queries(5):
            browser.get("/dashboard/keys/")


class TestSystemEmails:
    def test_sign_up_keeps_the_language_of_the_page(self, client):
        form = {"email": "neu@example.com", "password": PASSWORD, "workspace_name": "Laden"}
        client.post("/dashboard/signup/", form, headers={"Accept-Language": "de"})

        assert User.objects.get(email="neu@example.com").language == "de"

    def test_a_reset_is_in_the_language_of_the_account(self, client, alice):
        prefer(alice, language="de")

        client.post("/dashboard/reset/", {"email": alice.owner.email}, headers={"Accept-Language": "en"})

        mail = SystemMail.objects.get()
        assert (mail.language, mail.subject) == ("de", "Ihr Passwort bei Postrider zurücksetzen")

    def test_a_warning_is_in_the_language_of_each_owner(self, alice):
        prefer(alice, language="de")
        second = User.objects.create(email="second@alice.example")
        alice.workspace.memberships.create(user=second, role="owner")
        threshold = list(rate_thresholds())[-1]
        rates = ReputationRates(alice.workspace.id, None, 2_000, {threshold.counter: 250})

        warning_emails.send_warning(alice.workspace, summary=threshold.summary(rates, 5))

        texts = {mail.language: mail.text for mail in SystemMail.objects.all()}
        assert "250 von 2.000 Empfängern in 7 Tagen" in texts["de"]
        assert "12,50\N{NO-BREAK SPACE}%" in texts["de"]
        assert "250 of 2,000 recipients in 7 days had an invalid address: 12.50%" in texts["en"]


class TestTimes:
    AT = datetime(2026, 1, 31, 23, 30, 5, tzinfo=UTC)

    def test_are_shown_in_the_zone_and_language_with_utc_as_title(self):
        english, german = "31 Jan 2026, 23:30:05", "31.01.2026, 23:30:05"
        for language, zone, title, shown in (
            ("en", "UTC", english, "31 Jan 2026, 23:30"),
            ("en", "Asia/Kathmandu", english, "1 Feb 2026, 05:15"),
            ("de", "Europe/Berlin", german, "01.02.2026, 00:30"),
        ):
            with translation.override(language), timezone.override(zone):
                element = local_time(self.AT)
            assert element == f'<time datetime="2026-01-31T23:30:05Z" title="{title} UTC">{shown}</time>'

    def test_may_have_seconds_or_only_the_day(self):
        with timezone.override("America/New_York"):
            assert ">31 Jan 2026, 18:30:05<" in local_time(self.AT, "seconds")
            assert ">31 Jan 2026<" in local_time(self.AT, "day")
        assert local_time(None) == ""

    def test_outside_of_the_calendar_are_shown_in_utc(self):
        with timezone.override("Asia/Tokyo"):
            assert ">31 Dec 9999, 23:00<" in local_time(datetime(9999, 12, 31, 23, tzinfo=UTC))

    def test_of_a_page_are_in_the_zone_of_the_member(self, alice):
        make_email(alice.workspace, created_at=self.AT)

        pages = [
            prefer(alice, time_zone=zone).get("/dashboard/emails/").content.decode()
            for zone in ("", "Asia/Kathmandu", "Gone/Zone")
        ]

        assert [page.count(">31 Jan 2026, 23:30</time>") for page in pages] == [1, 0, 1]
        assert ">1 Feb 2026, 05:15</time>" in pages[1]

    def test_days_of_the_list_filter_are_those_of_the_zone(self, alice):
        make_email(alice.workspace, created_at=self.AT)

        def found(zone):
            page = prefer(alice, time_zone=zone).get("/dashboard/emails/?from=2026-02-01&to=2026-02-01")
            return "ada@example.com" in shown_text(page)

        assert [found("UTC"), found("Europe/Berlin"), found("America/New_York")] == [False, True, False]

    def test_days_of_the_api_are_in_utc(self, alice, api):
        make_email(alice.workspace, created_at=self.AT)
        prefer(alice, time_zone="Europe/Berlin").get("/dashboard/emails/")

        assert len(api.get("/emails?from=2026-01-31&to=2026-01-31").json()["data"]) == 1

    def test_the_first_and_the_last_day_of_the_calendar_are_refused_without_a_crash(self, alice):
        for zone, day in (("Europe/Berlin", "0001-01-01"), ("America/New_York", "9999-12-31")):
            page = prefer(alice, time_zone=zone).get(f"/dashboard/emails/?from={day}&to={day}")
            assert page.status_code == 200


class TestTimeZones:
    def test_a_known_zone_is_saved(self, owner, alice):
        for name in ("Mars/Base", "../../etc/passwd", "europe", "x" * 65, "Europe/Berlin\0"):
            assert owner.post(PREFERENCES, {"time_zone": name}).status_code == 200
            assert User.objects.get(pk=alice.owner.pk).time_zone == "", name
        owner.post(PREFERENCES, {"time_zone": "Asia/Kathmandu"})
        assert User.objects.get(pk=alice.owner.pk).time_zone == "Asia/Kathmandu"

    def test_every_region_is_suggested(self, owner):
        page = owner.get(PREFERENCES).content.decode()

        assert all(f'<option value="{region}' in page for region in REGIONS)
        assert page.count("<option value=") < len(available_timezones())

    def test_the_zone_of_the_browser_is_suggested_until_one_is_chosen(self, owner):
        assert "data-time-zone" in owner.get("/dashboard/").content.decode()

        owner.post(PREFERENCES, {"time_zone": "UTC"})

        assert "data-time-zone" not in owner.get("/dashboard/").content.decode()

    def test_visitors_get_no_suggestion(self):
        assert "data-time-zone" not in Client().get("/dashboard/login/").content.decode()


class TestForms:
    def test_a_time_is_in_the_zone_of_the_member(self, alice):
        browser = prefer(alice, time_zone="Europe/Berlin")
        assert "In the time zone Europe/Berlin." in shown_text(browser.get("/dashboard/keys/add/"))

        browser.post("/dashboard/keys/add/", {**FUTURE, "expires_at": USUAL})

        assert ApiKey.objects.get().expires_at == datetime(2027, 7, 1, 10, tzinfo=UTC)

    def test_a_time_that_the_clocks_skip_or_repeat_is_refused(self, alice):
        for time, problem in ((SKIPPED, "does not exist"), (REPEATED, "happens twice")):
            form = {**FUTURE, "expires_at": time}
            page = shown_text(prefer(alice, time_zone="Europe/Berlin").post("/dashboard/keys/add/", form))
            assert f"{problem} in the time zone Europe/Berlin" in page
            assert not ApiKey.objects.exists()
            prefer(alice, time_zone="UTC").post("/dashboard/keys/add/", form)
            ApiKey.objects.get().delete()
        # After the end of the calendar.
        late = prefer(alice, time_zone="America/New_York")
        page = late.post("/dashboard/keys/add/", {**FUTURE, "expires_at": "9999-12-31T23:59"})
        assert "Enter a valid date/time." in shown_text(page)
        assert not ApiKey.objects.exists()

    def test_the_form_of_a_schedule_shows_and_reads_the_zone(self, alice):
        at = datetime.now(UTC).replace(microsecond=0, second=0)
        email = make_email(alice.workspace, status="scheduled", scheduled_for=at.replace(year=at.year + 1))

        page = prefer(alice, time_zone="Asia/Kathmandu").get(f"/dashboard/emails/{email.id}/schedule/")

        shown = timezone.localtime(email.scheduled_for, ZoneInfo("Asia/Kathmandu"))
        assert f'value="{shown:%Y-%m-%dT%H:%M}"' in page.content.decode()
        assert "In the time zone Asia/Kathmandu, at most 30 days ahead." in shown_text(page)
