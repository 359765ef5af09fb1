"""Words of the documentation search: stop words and synonyms.

See docs/decisions/0213.
"""

COMMON = """
a about all am an and any are as at be been but by can cannot could did do does for from get getting go had has have
how i if in into is it its just like make me my need no not of on or our please should so some that the their
them then there these they this to us use using want was way we what when where which who why will with would
you your
"""
STOP_WORDS = frozenset(COMMON.split())
# Words of one line find each other. A line may have words that no page uses.
SYNONYMS = (
    "email mail message",
    "send sent",
    "schedule later future delay postpone cron",
    "attachment attach file upload pdf",
    "size limit maximum max large big",
    "webhook callback hook notification",
    "key token credential secret",
    "unsubscribe optout",
    "spam junk deliverability inbox",
    "complaint complain feedback fbl arf",
    "bounce undeliverable reject refuse",
    "cause reason",
    "retry repeat attempt backoff",
    "blocklist blacklist dnsbl rbl spamhaus block",
    "ptr reverse rdns",
    "install setup deploy host",
    "docker compose container podman",
    "kubernetes k8s helm kustomize",
    "debian ubuntu systemd",
    "upgrade update version",
    "changelog release news",
    "backup restore dump snapshot recovery",
    "setting environment variable env config configuration option",
    "receive inbound incoming reply",
    "template handlebars mustache liquid mjml",
    "batch bulk mass many blast",
    "simulator sandbox test fake",
    "test ci pytest jest",
    "error failure problem troubleshoot",
    "rate throttle 429",
    "monitor metric prometheus grafana alert observability",
    "alert alarm threshold notify warning",
    "move migrate migration switch import",
    "privacy gdpr erase dsgvo",
    "exim postfix sendmail smarthost relay",
    "cli command terminal shell",
    "rails ruby actionmailer",
    "laravel symfony php",
    "spring java kotlin jakarta",
    "javascript typescript nodejs node",
    "nextjs react vercel",
    "django python flask fastapi",
    "image picture inline cid logo",
    "open pixel",
    "analytics statistic stat report chart",
    "warmup warm ramp",
    "suppression suppress optout",
    "tls ssl certificate https starttls",
    "scaling cluster failover availability replica",
    "sso oidc openid saml keycloak okta entra",
    "member team user invite role",
    "password login authentication signin",
    "workspace tenant account organization",
    "idempotency duplicate twice",
    "performance speed fast throughput benchmark",
    "event log history timeline",
    "mcp claude assistant llm ai",
    "postmaster snds",
    "started start tutorial begin quickstart introduction",
    "dkim signature",
    "2fa mfa totp factor passkey",
    "stream topic category preference",
    "header custom",
    "tag label metadata",
)
