"""The staff's admin site, at /admin/."""

from unfold.sites import UnfoldAdminSite


class StaffSite(UnfoldAdminSite):
    site_title = "Postrider staff"
    site_header = "Postrider staff"
    index_title = "Operations"
    login_template = "dashboard/sign_in.html"
