"""Every setting, read from the environment; `.env.example` lists them with their defaults."""

from pathlib import Path
from urllib.parse import urlsplit

from config import env
from config.postgres.database_url import parse_database_url
from console.dashboard.ui import theme

BASE_DIR = Path(__file__).resolve().parent.parent

# Embedded mode changes the defaults of other settings.
MODE = env.choice("MODE", "production", options=["production", "embedded"])
EMBEDDED = MODE == "embedded"
DEBUG = False

SECRET_KEY = env.text("SECRET_KEY") or "unset"
APP_KEYS = env.key_ring("APP_KEYS")
PUBLIC_URL = env.text("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
ALLOWED_HOSTS = env.string_list("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"] if EMBEDDED else [])
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
# The target of the CNAMEs of tracking hosts, and the authority that issues their certificates.
TRACKING_HOST = (env.text("TRACKING_HOST") or urlsplit(PUBLIC_URL).hostname or "").lower().rstrip(".")
TRACKING_CA = env.text("TRACKING_CA", "letsencrypt.org").lower()

# Accounts and plans
SIGNUP = env.choice("SIGNUP", "open" if EMBEDDED else "closed", options=["open", "closed"])
PLANS_FILE = env.text("PLANS_FILE")
PLANS = env.plans(PLANS_FILE)
DEFAULT_PLAN = env.choice("DEFAULT_PLAN", "free", options=list(PLANS))
# Days in which a deleted workspace can be restored.
WORKSPACE_DELETION_DAYS = env.integer("WORKSPACE_DELETION_DAYS", 7, low=0, high=365)
# Days after which backups of the database are deleted, for the receipts of erasures.
BACKUP_RETENTION_DAYS = env.integer("BACKUP_RETENTION_DAYS", 14, low=0, high=3650)
# Whether a second factor is required or optional for staff.
STAFF_SECOND_FACTOR = env.choice(
    "STAFF_SECOND_FACTOR", "optional" if EMBEDDED else "required", options=["required", "optional"]
)
# Signing in with an identity provider (docs/openid-connect.md)
OIDC_ISSUER = env.text("OIDC_ISSUER")
OIDC_CLIENT_ID = env.text("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env.text("OIDC_CLIENT_SECRET")
OIDC_SCOPES = env.text("OIDC_SCOPES", "openid email profile groups")
OIDC_LABEL = env.text("OIDC_LABEL", "SSO")
OIDC_ROLES_FILE = env.text("OIDC_ROLES_FILE")
OIDC_CREATE = env.choice("OIDC_CREATE", "mapped", options=["mapped", "none"])
OIDC_TRUST_EMAIL = env.boolean("OIDC_TRUST_EMAIL", False)
OIDC_SECOND_FACTOR = env.choice("OIDC_SECOND_FACTOR", "idp", options=["idp", "local"])
OIDC_SESSION_HOURS = env.integer("OIDC_SESSION_HOURS", 12, low=1, high=336)
OIDC_ALLOW_PRIVATE_NETWORKS = env.boolean("OIDC_ALLOW_PRIVATE_NETWORKS", EMBEDDED)
# Who may sign in with a password.
PASSWORDS = env.choice("PASSWORDS", "on", options=["on", "staff", "off"])
# The sender of system emails: invitations, password resets, confirmations
SYSTEM_FROM = env.text("SYSTEM_FROM", "Postrider <service@postrider.example>" if EMBEDDED else "")
# Their look (docs/decisions/0269)
SYSTEM_NAME = env.text("SYSTEM_NAME", "Postrider")
SYSTEM_LOGO_URL = env.text("SYSTEM_LOGO_URL")
SYSTEM_COLOR = env.color("SYSTEM_COLOR", "#4f46e5")
# Percent of a workspace's recipients: above it the owners are warned, or the workspace is suspended. By default only
# untrusted sign-ups are suspended, and nothing is checked in embedded mode (docs/decisions/0065).
UNTRUSTED_SIGNUPS = SIGNUP == "open" and not EMBEDDED
COMPLAINT_WARN_PERCENT = env.percent("COMPLAINT_WARN_PERCENT", "off" if EMBEDDED else "0.1")
COMPLAINT_PAUSE_PERCENT = env.percent("COMPLAINT_PAUSE_PERCENT", "0.3" if UNTRUSTED_SIGNUPS else "off")
BOUNCE_WARN_PERCENT = env.percent("BOUNCE_WARN_PERCENT", "off" if EMBEDDED else "5")
BOUNCE_PAUSE_PERCENT = env.percent("BOUNCE_PAUSE_PERCENT", "10" if UNTRUSTED_SIGNUPS else "off")
RATE_LIMIT = env.rate("RATE_LIMIT", (50, 100))
# A request that has waited longer is rejected with 503 (docs/decisions/0062).
WEB_MAX_WAIT_MS = env.integer("WEB_MAX_WAIT_MS", 1000, low=50, high=60_000)
# Dialects whose paths also work without /compat/<name> (interfaces.compat.root).
COMPAT_AT_ROOT = env.choices("COMPAT_AT_ROOT", options=["resend", "postmark", "sendgrid"])
QUOTA_UNIT = env.choice("QUOTA_UNIT", "email", options=["email", "recipient"])

# Delivery
# Several transports (docs/guides/transports.md), of which DELIVERY_TRANSPORT then is no name.
TRANSPORTS_FILE = env.text("TRANSPORTS_FILE")
DELIVERY_TRANSPORT = env.choice(
    "DELIVERY_TRANSPORT",
    "inbox" if EMBEDDED or TRANSPORTS_FILE else "",
    options=["inbox", "smtp", "direct", "anymail"],
)
TRANSPORTS = env.transports(TRANSPORTS_FILE, kind=DELIVERY_TRANSPORT)
if TRANSPORTS_FILE:
    DELIVERY_TRANSPORT = "named"
# The organisations that run mail hosts, and what they permit (docs/receivers.md).
RECEIVERS_FILE = env.text("RECEIVERS_FILE")
RECEIVERS = env.receivers(RECEIVERS_FILE)
# Lists in which the source addresses of direct transports are looked up (docs/decisions/0349).
BLOCKLISTS = env.block_lists("BLOCKLISTS", ["zen.spamhaus.org", "bl.spamcop.net", "b.barracudacentral.org"])
# Whether events and the API of a workspace name transports and routes.
SHOW_TRANSPORTS = env.boolean("SHOW_TRANSPORTS", False)
# Above all transports, routes and rules (docs/guides/staging.md).
RECIPIENTS = env.recipients("RECIPIENTS", "all")
SMTP_URL = env.text("SMTP_URL")
DIRECT_SMTP_PORT = env.integer("DIRECT_SMTP_PORT", 25, low=1, high=65_535)
DELIVERY_ALLOW_PRIVATE_NETWORKS = env.boolean("DELIVERY_ALLOW_PRIVATE_NETWORKS", False)
SIMULATOR_DOMAIN = env.text("SIMULATOR_DOMAIN", "simulator.example").lower()
ANYMAIL_BACKEND = env.text("ANYMAIL_BACKEND")
ANYMAIL = env.prefixed("ANYMAIL_", exclude=["ANYMAIL_BACKEND"])
STREAMS_WITHOUT_LINK = env.choice("STREAMS_WITHOUT_LINK", "allow", options=["allow", "deny"])
SUPPRESS_ON = env.choice("SUPPRESS_ON", "recipient_fault", options=["recipient_fault", "every_bounce"])
DELIVERY_CONNECTIONS = env.integer("DELIVERY_CONNECTIONS", 32, low=1, high=1000)
DELIVERY_MAX_AGE = env.integer("DELIVERY_MAX_AGE", 86_400, low=60, high=30 * 86_400)
DELIVERY_RETRY_SECONDS = env.seconds(
    "DELIVERY_RETRY_SECONDS", [60, 180, 300, 600, 1200, 2400, 3600, 7200, 10_800, 14_400]
)
LEASE_SECONDS = env.integer("LEASE_SECONDS", 60, low=4, high=600)
EHLO_NAME = env.text("EHLO_NAME", "localhost")
DELIVERY_TLS = env.choice("DELIVERY_TLS", "opportunistic", options=["opportunistic", "required"])
RETURN_PATH_DOMAIN = env.text("RETURN_PATH_DOMAIN", "bounce.localhost")
# MTA-STS and, with a validating resolver, DANE of recipient domains, for direct transports (docs/decisions/0396).
DELIVERY_TLS_POLICIES = env.choice("DELIVERY_TLS_POLICIES", "on", options=["on", "off"]) == "on"
# Sends TLS reports (docs/decisions/0399).
TLSRPT_DOMAIN = env.text("TLSRPT_DOMAIN").lower()
DNS_SERVERS = env.servers("DNS_SERVERS")
DNSSEC_RESOLVER = env.servers("DNSSEC_RESOLVER")
INBOX_PORT = env.integer("INBOX_PORT", 2527, low=1, high=65_535)

# Sending domains
SENDING_DOMAIN_POLICY = env.choice(
    "SENDING_DOMAIN_POLICY", "registered" if EMBEDDED else "verified", options=["registered", "verified"]
)
# Includes those of all transports.
SPF_MECHANISMS = " ".join(
    dict.fromkeys(
        [
            *env.text("SPF_MECHANISMS", "ip4:127.0.0.1" if EMBEDDED and not TRANSPORTS.spf else "").split(),
            *TRANSPORTS.spf,
        ]
    )
)
DMARC_RUA = env.string_list("DMARC_RUA")

# Inbound server: reports to return paths, and received email
INBOUND_HOST = env.text("INBOUND_HOST", "127.0.0.1" if EMBEDDED else "0.0.0.0")  # noqa: S104 - external mail hosts connect
INBOUND_PORT = env.integer("INBOUND_PORT", 2526 if EMBEDDED else 25, low=1, high=65_535)
INBOUND_TLS_CERT = env.text("INBOUND_TLS_CERT")
INBOUND_TLS_KEY = env.text("INBOUND_TLS_KEY")
# Also read by django-anymail: user:password of the basic authentication of its webhooks
ANYMAIL_WEBHOOK_SECRET = env.text("ANYMAIL_WEBHOOK_SECRET")
# Received email: for the domains of workspaces
RECEIVING_DOMAIN = env.text("RECEIVING_DOMAIN", "in.demo.example" if EMBEDDED else "").lower().rstrip(".")
RECEIVING_MX = [
    name.lower().rstrip(".") for name in env.string_list("RECEIVING_MX", ["mx.demo.example"] if EMBEDDED else [])
]
# The inbound server as workers reach it, for emails to domains that are received here.
RECEIVING_SERVER = env.host_and_port("RECEIVING_SERVER", f"127.0.0.1:{INBOUND_PORT}")
RECEIVING_MAX_BYTES = env.integer("RECEIVING_MAX_BYTES", 25 * 1024 * 1024, low=65_536, high=100 * 1024 * 1024)
RECEIVING_MEMORY_BYTES = env.integer("RECEIVING_MEMORY_BYTES", 256 * 1024 * 1024, low=1024 * 1024, high=2**40)
RECEIVING_DAILY_LIMIT = env.integer("RECEIVING_DAILY_LIMIT", 10_000, low=1, high=10**9)
RECEIVING_STORAGE = env.integer("RECEIVING_STORAGE", 0, low=0, high=2**50)
RECEIVING_DNSBL = env.string_list("RECEIVING_DNSBL")
RSPAMD_URL = env.text("RSPAMD_URL")
RSPAMD_PASSWORD = env.text("RSPAMD_PASSWORD")
# Submission: the SMTP server for programs
SUBMISSION_HOST = env.text("SUBMISSION_HOST", "127.0.0.1" if EMBEDDED else "0.0.0.0")  # noqa: S104 - programs on other machines connect
SUBMISSION_PORTS = env.ports("SUBMISSION_PORTS", [2525] if EMBEDDED else [587, 2525])
SUBMISSION_TLS_PORTS = env.ports("SUBMISSION_TLS_PORTS", [465])
SUBMISSION_TLS_CERT = env.text("SUBMISSION_TLS_CERT")
SUBMISSION_TLS_KEY = env.text("SUBMISSION_TLS_KEY")
SUBMISSION_ALLOW_PLAINTEXT = env.boolean("SUBMISSION_ALLOW_PLAINTEXT", EMBEDDED)
SUBMISSION_SUPPRESSED = env.choice("SUBMISSION_SUPPRESSED", "refuse", options=["refuse", "accept"])
SUBMISSION_SESSIONS = env.integer("SUBMISSION_SESSIONS", 1000, low=1, high=10_000)
# Webhooks
WEBHOOK_RETRY_SECONDS = env.seconds("WEBHOOK_RETRY_SECONDS", [5, 60, 300, 1800, 7200, 18_000, 28_800, 28_800])
WEBHOOK_PORTS = env.ports("WEBHOOK_PORTS", [443])
WEBHOOK_CONNECTIONS = env.integer("WEBHOOK_CONNECTIONS", 128, low=2, high=1000)
WEBHOOK_ALLOW_PRIVATE_NETWORKS = env.boolean("WEBHOOK_ALLOW_PRIVATE_NETWORKS", EMBEDDED)
# Monitoring
METRICS_TOKEN = env.text("METRICS_TOKEN")
WEB_STOP_DELAY = env.integer("WEB_STOP_DELAY", 0 if EMBEDDED else 5, low=0, high=300)
# The canary (docs/decisions/0382): 0 minutes switch it off.
CANARY_MINUTES = env.integer("CANARY_MINUTES", 0, low=0, high=1440)
CANARY_ADDRESS = env.text("CANARY_ADDRESS").lower()
CANARY_PING_URL = env.text("CANARY_PING_URL")
READY_MAX_DELAY = env.integer("READY_MAX_DELAY", 900, low=10, high=7 * 86_400)

WEB_CONCURRENCY = env.integer("WEB_CONCURRENCY", 0, low=0, high=512)
WORKER_CONCURRENCY = env.integer("WORKER_CONCURRENCY", 0, low=0, high=128)
SUBMISSION_CONCURRENCY = env.integer("SUBMISSION_CONCURRENCY", 0, low=0, high=128)

# Statements waiting for a lock fail after 5 s, so that the second of two requests with the same idempotency key gets a
# 409 instead of blocking a web process.
DATABASE_OPTIONS = {
    "connect_timeout": 5,
    "options": "-c lock_timeout=5s -c statement_timeout=15s -c idle_in_transaction_session_timeout=30s"
    " -c plan_cache_mode=force_generic_plan",
    # Applies to statements prepared by core.lib.sql; Django's own cursors never prepare.
    "prepare_threshold": 5,
    # A server that lost its power sends nothing: its connections end after 20 seconds (docs/decisions/0250).
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "tcp_user_timeout": 20_000,
}
DATABASE_URL = env.text("DATABASE_URL")
REDIS_URL = env.text("REDIS_URL")
DATABASES = {"default": {**parse_database_url(DATABASE_URL, options=DATABASE_OPTIONS), "ENGINE": "config.postgres"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    # Before unfold, whose templates it overrides.
    "console.dashboard",
    # Not unfold's default config, which would replace config.staff.StaffSite.
    "unfold.apps.BasicAppConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "config.apps.StaffAdminConfig",
    "rest_framework",
    "drf_spectacular",
    "config.apps.ProjectConfig",
    "core.api",
    "interfaces.compat",
    "console.documentation",
    "core.workspaces",
    "domains",
    "streams",
    "templates_app",
    "suppressions",
    "webhooks",
    "core.counters",
    "core.request_log",
    "analytics",
    "alerts",
    "emails",
    "events",
    "receiving",
    "interfaces.inbound.inbox",
    "interfaces.inbound",
    "console.privacy",
    "console.provisioning",
    "interfaces.submission",
    "interfaces.tracking",
    "console.system_mail",
]

MIDDLEWARE = [
    "interfaces.tracking.middleware.TrackingHostMiddleware",
    "interfaces.compat.root.CompatAtRootMiddleware",
    "core.api.request_ids.RequestIdMiddleware",
    "core.request_log.recording.RequestLogMiddleware",
    "core.api.admission.AdmissionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "console.dashboard.ui.middleware.PageHeadersMiddleware",
    "console.dashboard.ui.middleware.PageBodyMiddleware",
    "console.dashboard.static_files.StaticFilesMiddleware",
    "console.dashboard.ui.middleware.PageCompressionMiddleware",
    "console.dashboard.ui.middleware.PageSessionMiddleware",
    "config.health.HostMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "console.dashboard.ui.middleware.PageAuthenticationMiddleware",
    "console.dashboard.ui.middleware.PagePreferencesMiddleware",
    "core.workspaces.audit.AuditMiddleware",
    "console.dashboard.ui.middleware.PageMessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTHENTICATION_BACKENDS = [
    "console.dashboard.auth.passwords.PasswordPolicy",
    "django.contrib.auth.backends.ModelBackend",
]
LOGIN_REDIRECT_URL = "dashboard:index"
AUTH_USER_MODEL = "workspaces.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
PASSWORD_RESET_TIMEOUT = 3600
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Cookies and headers. A __Host- cookie can only be set by this host, over https.
SECURE = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SESSION_COOKIE_NAME = "__Host-session" if SECURE else "session"
CSRF_COOKIE_NAME = "__Host-csrf" if SECURE else "csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "console.dashboard.auth.refused_form.refuse_form"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
SESSION_ENGINE = "console.dashboard.auth.sessions"
SESSION_COOKIE_AGE = 14 * 86_400
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "SAMEORIGIN"
# The proxy's header is trusted only if TRUSTED_PROXIES is set.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None

# Warnings of manage.py check --deploy that no operator can act on.
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for other hosts of the domain is not for this service to set.
    "security.W008",  # The reverse proxy redirects to https.
    "security.W019",  # PageHeadersMiddleware sends DENY; only previews are shown in a frame.
    "security.W021",  # The preload list is for whole domains, as W005.
]

# The API, logs and documentation are English; the dashboard and system emails have all languages.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
# The languages of the pages behind links in emails, and of the unsubscribe link.
RECIPIENT_LANGUAGES = ["en", "de", "es", "fr", "it", "nl", "pl"]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "console.dashboard.formats"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = env.text("STATIC_ROOT") or str(BASE_DIR / "var" / "static")
STATICFILES_FINDERS = ["console.dashboard.static_files.UsedFilesFinder"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "console.dashboard.static_files.HashedFilesStorage"},
}
# Also serves files that are not collected.
WHITENOISE_USE_FINDERS = True

# Appearance of the two admin sites, read by django-unfold.
UNFOLD = theme.UNFOLD
DASHBOARD = theme.DASHBOARD

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["core.workspaces.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["core.workspaces.api.scopes.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["core.api.parser.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_FILTER_BACKENDS": ["core.api.filters.FilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "core.api.pagination.PagePagination",
    "EXCEPTION_HANDLER": "core.api.exception_handler.problem_response",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "core.api.parser.Negotiation",
    "DEFAULT_SCHEMA_CLASS": "core.api.openapi.ApiSchema",
    # Unknown query parameters are ignored; by default DRF returns 404 for ?format=xml.
    "URL_FORMAT_OVERRIDE": None,
    "UNAUTHENTICATED_USER": None,
    "COMPACT_JSON": True,
    "UNICODE_JSON": True,
}

# Settings of drf-spectacular for the document at /v1/openapi.json (core.api.openapi).
SPECTACULAR_SETTINGS = {
    "TITLE": "Postrider",
    "VERSION": "1.2",
    "OAS_VERSION": "3.1.1",
    "SERVERS": [{"url": PUBLIC_URL}],
    "SCHEMA_PATH_PREFIX": "/v1/",
    "PREPROCESSING_HOOKS": ["core.api.openapi.resource_paths"],
    "POSTPROCESSING_HOOKS": ["core.api.openapi.complete_document"],
    "SORT_OPERATIONS": False,
    "SORT_OPERATION_PARAMETERS": False,
    # Requests and responses have separate serializers.
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # Docstrings are for developers of the service, not for API users.
    "DISABLE_DOCSTRING_DESCRIPTIONS": True,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "config.logs.JsonFormatter"}},
    "filters": {
        "repeats": {"()": "core.lib.outage_log.RepeatFilter"},
        "outages": {"()": "core.lib.worker.database_outage.OutageFilter"},
        "exceptions": {"()": "config.logs.ExceptionFilter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["outages"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # The access log of core.api.request_ids contains the same information, without addresses.
        "django.request": {"level": "ERROR", "filters": ["exceptions"]},
        "django.server": {"level": "ERROR"},
        # Warnings of aiosmtpd contain unknown commands, such as the password that a client sends after a refused AUTH.
        "mail.log": {"level": "ERROR"},
        # Each signature of a received message that fails, with its content.
        "dkimpy": {"level": "CRITICAL"},
        # Celery sets the level of the root logger to WARNING, which would hide that a worker is ready.
        "postrider.processes": {"level": "INFO"},
        # Each attempt to connect to Redis.
        "celery.worker.consumer.consumer": {"filters": ["repeats"]},
    },
}
