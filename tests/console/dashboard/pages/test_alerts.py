"""Pages of alerts."""

from datetime import timedelta

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from alerts.models import Alert
from console.system_mail.tasks import check_watched_values
from core.workspaces.models import AuditEntry
from streams.services import create_stream
from tests.alerts.builders import count, make_alert
from tests.console.dashboard.conftest import make_email, shown_text

LIST = "/dashboard/alerts/"
FIELDS = {"metric": "bounce_rate", "threshold": "4.5", "email_owners": "on"}


class TestWithoutAlerts:
    def test_the_sidebar_does_not_mention_them_but_other_pages_link_to_them(self, owner, alice):
        make_email(alice.workspace)
        assert f'href="{LIST}"' not in owner.get("/dashboard/domains/").text
        for path in ("", "usage/"):
            assert f'href="{LIST}"' in owner.get(f"/dashboard/{path}").text
        make_alert(alice.workspace)
        assert f'href="{LIST}"' in owner.get("/dashboard/domains/").text

    def test_the_list_explains_them(self, owner):
        page = owner.get(LIST)
        assert "No alerts yet" in shown_text(page)
        assert f'href="{LIST}add/"' in page.text


class TestList:
    def test_a_row_shows_value_threshold_and_state(self, owner, alice):
        make_alert(alice.workspace, threshold=4.5)
        make_alert(alice.workspace, "quota_used", 80, email_owners=False)
        count(alice.workspace, rated_sent=1000, rated_bounced=62)
        check_watched_values()
        text = " ".join(shown_text(owner.get(LIST)).split())
        assert "Bounce rate 6.2% 4.5% Yes triggered" in text
        assert "Quota used unlimited 80% No not triggered" in text

    def test_each_metric_has_its_unit(self, owner, alice):
        for metric, threshold in (("latency_p95", 2.5), ("deferred_share", 20), ("waiting", 10), ("silent", 2)):
            make_alert(alice.workspace, metric, threshold)
        text = " ".join(shown_text(owner.get(LIST)).split())
        assert "95th percentile of the time to send no data 2.5 s Yes not triggered" in text
        assert "Deferred recipients no data 20% Yes" in text
        assert "Waiting emails 0 10 Yes" in text
        assert "Silence no data 2 usual gaps Yes" in text
        german = " ".join(shown_text(owner.get(LIST, headers={"accept-language": "de"})).split())
        assert "Versanddauer keine Daten 2,5 s Ja" in german
        assert "Stille keine Daten 2 übliche Abstände Ja" in german

    def test_a_value_above_the_threshold_names_the_time_of_the_next_notification(self, owner, alice):
        alert = make_alert(alice.workspace, threshold=4.5)
        begun_at = timezone.now() - timedelta(hours=7)
        Alert.objects.update(last_triggered_at=begun_at)
        count(alice.workspace, rated_sent=1000, rated_bounced=62)
        state = f"threshold reached notified again from {date_format(begun_at + timedelta(days=1), 'j M Y, H:i')}"

        for page in (LIST, f"{LIST}{alert.id}/"):
            text = " ".join(shown_text(owner.get(page)).split())
            assert state in text
            assert "not triggered" not in text
            german = " ".join(shown_text(owner.get(page, headers={"accept-language": "de"})).split())
            assert "Schwelle erreicht Benachrichtigung wieder ab" in german

    def test_other_alerts_that_ended_are_not_triggered(self, owner, alice):
        make_alert(alice.workspace, threshold=4.5)
        count(alice.workspace, rated_sent=1000, rated_bounced=44)
        for hours, more in ((7, 0), (25, 18)):
            Alert.objects.update(last_triggered_at=timezone.now() - timedelta(hours=hours))
            count(alice.workspace, rated_bounced=more)
            assert "not triggered" in shown_text(owner.get(LIST)), hours
        text = " ".join(shown_text(owner.get(LIST, headers={"accept-language": "de"})).split())
        assert "Bounce-Rate 6,2 % 4,5 % Ja nicht ausgelöst" in text


class TestForms:
    def test_an_alert_is_created(self, owner, alice):
        response = owner.post(f"{LIST}add/", FIELDS, follow=True)
        assert "The alert was created." in response.text
        alert = Alert.objects.get()
        assert (alert.workspace, alert.metric, alert.stream, alert.threshold, alert.email_owners) == (
            alice.workspace, "bounce_rate", "", 4.5, True
        )  # fmt: skip
        assert AuditEntry.objects.get(act="alert_created").actor == alice.owner.email

    def test_without_other_streams_none_is_asked_for(self, owner, alice):
        assert "tream" not in shown_text(owner.get(f"{LIST}add/"))
        create_stream(alice.workspace, slug="news", name="News")
        assert 'name="stream"' in owner.get(f"{LIST}add/").text
        owner.post(f"{LIST}add/", FIELDS | {"stream": "news"})
        assert Alert.objects.get().stream == "news"

    def test_a_link_chooses_the_value(self, owner):
        page = owner.get(f"{LIST}add/?metric=quota_used").text
        assert 'value="quota_used" selected' in page
        assert owner.get(f"{LIST}add/?metric=nonsense").status_code == 200

    def test_errors_are_beside_their_fields(self, owner):
        for name, value, error in (
            ("threshold", "101", "For this metric, the threshold is at most 100."),
            ("threshold", "172801", "less than or equal to 172800"),
            ("threshold", "much", "Enter a number."),
            ("metric", "opens", "Select a valid choice."),
        ):
            assert error in owner.post(f"{LIST}add/", FIELDS | {name: value}).text
        assert not Alert.objects.exists()

    def test_a_quota_has_no_stream(self, owner, alice):
        create_stream(alice.workspace, slug="news", name="News")
        page = owner.post(f"{LIST}add/", FIELDS | {"metric": "quota_used", "stream": "news"})
        assert "The quota is that of the whole workspace." in page.text

    def test_a_refusal_of_the_service_is_shown(self, owner, alice):
        make_alert(alice.workspace, threshold=4.5)
        page = shown_text(owner.post(f"{LIST}add/", FIELDS))
        assert "already. Change it, or use another threshold." in page

    def test_an_alert_is_changed(self, owner, alice):
        alert = make_alert(alice.workspace)
        page = owner.get(f"{LIST}{alert.id}/")
        assert "Bounce rate at 4%" in shown_text(page)
        response = owner.post(f"{LIST}{alert.id}/", {"threshold": "6"}, follow=True)
        assert "The alert was saved." in response.text
        alert.refresh_from_db()
        assert (alert.threshold, alert.email_owners) == (6, False)

    def test_the_page_of_an_alert_has_its_present_value(self, owner, alice):
        alert = make_alert(alice.workspace, threshold=4.5)
        count(alice.workspace, rated_sent=1000, rated_bounced=62)

        page = owner.get(f"{LIST}{alert.id}/").text
        assert "<dt>Now</dt><dd>6.2%" in page
        assert "<dt>Threshold</dt><dd>4.5%" in page
        assert ">not triggered</span>" in page
        check_watched_values()
        assert ">triggered</span>" in owner.get(f"{LIST}{alert.id}/").text

    def test_a_threshold_has_the_limits_of_the_metric(self, owner, alice):
        alert = make_alert(alice.workspace)
        page = owner.post(f"{LIST}{alert.id}/", {"threshold": "101"})
        assert "For this metric, the threshold is at most 100." in page.text
        latency = make_alert(alice.workspace, "latency_p95", 60)
        owner.post(f"{LIST}{latency.id}/", {"threshold": "101"})
        latency.refresh_from_db()
        assert latency.threshold == 101

    def test_an_alert_is_deleted_after_a_confirmation(self, owner, alice):
        alert = make_alert(alice.workspace)
        assert "Nobody is notified" in owner.get(f"{LIST}{alert.id}/delete/").text
        assert Alert.objects.exists()
        assert "The alert was deleted." in owner.post(f"{LIST}{alert.id}/delete/", follow=True).text
        assert not Alert.objects.exists()


def test_staff_see_alerts_and_change_none(staff, alice):
    alert = make_alert(alice.workspace)
    assert alice.workspace.name in staff.get("/admin/alerts/alert/").text
    path = reverse("admin:alerts_alert_change", args=[quote(alert.id)])
    page = staff.get(path)
    assert (page.status_code, 'name="threshold"' in page.text) == (200, False)
    assert staff.post(path, {"threshold": "9"}).status_code == 403
