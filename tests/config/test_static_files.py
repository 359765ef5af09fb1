"""Static files: collected with hashes, and served without them as long as they are not collected."""

import re
import shutil

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.test import Client

from config.doctor.diagnosis import DoctorOptions, Verdict
from config.doctor.installation import check_static_files
from tests.collected import collected_files

STYLESHEET = "dashboard/dashboard.css"


def read(path: str, **headers: str):
    response = Client().get(path, headers=headers)
    # A response of WhiteNoise can be read only once.
    body = response.getvalue()
    return response, body


def test_a_collected_file_has_a_hash_and_stays_in_the_cache(collected):
    url = staticfiles_storage.url(STYLESHEET)
    response, body = read(url, accept_encoding="gzip")
    plain, text = read(url)

    assert re.fullmatch(r"/static/dashboard/dashboard\.[0-9a-f]{12}\.css", url)
    assert response.headers["Cache-Control"] == "max-age=315360000, public, immutable"
    assert response.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert len(body) < len(text) / 3


def test_an_address_inside_of_a_stylesheet_has_a_hash_too(collected):
    _, text = read(staticfiles_storage.url("dashboard/fonts.css"))

    assert staticfiles_storage.url("dashboard/inter.woff2").rpartition("/")[2].encode() in text


def test_the_hash_of_another_release_gets_the_present_file_for_a_short_time(collected):
    response, body = read("/static/dashboard/dashboard.0123456789ab.css")

    assert response.status_code == 200
    assert b"--pr-surface" in body
    assert response.headers["Cache-Control"] == "max-age=60, public"


def test_an_unknown_file_is_not_found(collected):
    assert Client().get("/static/dashboard/none.0123456789ab.css").status_code == 404
    assert Client().get("/static/../settings.py").status_code == 404


def test_files_that_are_not_collected_are_served_by_their_plain_names():
    url = staticfiles_storage.url(STYLESHEET)
    response, body = read(url)

    assert url == f"/static/{STYLESHEET}"
    assert b"--pr-surface" in body
    assert response.headers["Cache-Control"] == "max-age=60, public"
    assert check_static_files(DoctorOptions()).verdict is Verdict.WARNING


def test_files_of_another_version_are_not_used(settings, collected, tmp_path):
    assert check_static_files(DoctorOptions()).verdict is Verdict.OK
    shutil.copytree(collected_files(), tmp_path / "static")
    (tmp_path / "static" / "sources.json").write_text('"of another version"')
    settings.STATIC_ROOT = str(tmp_path / "static")
    settings.STORAGES = {**settings.STORAGES}

    assert staticfiles_storage.url(STYLESHEET) == f"/static/{STYLESHEET}"
    assert check_static_files(DoctorOptions()).verdict is Verdict.WARNING


@pytest.mark.django_db
def test_pages_are_compressed_and_api_responses_are_not(api):
    page = Client().get("/dashboard/login/", headers={"accept-encoding": "gzip"})
    listed = api.get("/emails", accept_encoding="gzip")

    assert page.headers["Content-Encoding"] == "gzip"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "Content-Encoding" not in listed.headers
