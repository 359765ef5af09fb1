/** Request and response types of the API. Responses may gain fields. */
import type { Attachment } from "./attachments.js";

export type Data = Record<string, unknown>;
/** RFC 3339, such as `2026-11-21T06:20:00.000Z`. */
export type Timestamp = string;

export type EmailStatus =
  | "scheduled"
  | "queued"
  | "sent"
  | "delivered"
  | "bounced"
  | "failed"
  | "opened"
  | "clicked"
  | "cancelled";

export type EventType = EmailStatus | "deferred" | "unsubscribed" | "complained" | "replied";

export interface Warning {
  code: string;
  message: string;
  [member: string]: unknown;
}

export interface Send {
  /** `ada@example.com` or `Ada L <ada@example.com>`; its domain must be registered in the workspace. */
  from: string;
  /** One address or up to 50. All of them see all addresses in one email. */
  to: string | string[];
  /** Optional with `templateId` and `inReplyToId`. */
  subject?: string;
  html?: string;
  text?: string;
  /** A template's id or alias. It replaces `html` and `text`. */
  templateId?: string;
  templateData?: Data;
  replyTo?: string | string[];
  cc?: string | string[];
  bcc?: string | string[];
  tags?: string[];
  metadata?: Data;
  headers?: Record<string, string>;
  attachments?: Attachment[];
  /** In the future, at most 30 days ahead. */
  scheduledFor?: Date | Timestamp;
  trackOpens?: boolean;
  trackClicks?: boolean;
  /** Answers go to an address of the service, which matches them to this email. Not with `replyTo`. */
  replyTracking?: boolean;
  /** The id of a received email that this one answers. */
  inReplyToId?: string;
  /** The id of a stream; by default `main`, or the API key's only stream. */
  stream?: string;
  /** A workspace accepts one email per key. Another body returns the first response; the option of the same name is strict. */
  idempotencyKey?: string;
}

/** An answer to a received email, whose sender gets it if `to` is absent. */
export interface Answer extends Omit<Send, "to"> {
  to?: string | string[];
  inReplyToId: string;
}

export interface Accepted {
  id: string;
  status: "queued" | "scheduled";
  createdAt: Timestamp;
  warnings?: Warning[];
}

/** The rendered email of a dry run. */
export interface Checked {
  valid: true;
  subject: string;
  html: string;
  text: string;
  warnings: Warning[];
}

export interface Batch {
  from: string;
  templateId: string;
  /** Up to 500. Each gets a separate email. */
  recipients: { to: string; templateData?: Data; metadata?: Data }[];
  subject?: string;
  replyTo?: string | string[];
  tags?: string[];
  metadata?: Data;
  scheduledFor?: Date | Timestamp;
  /** As in `Send`. */
  stream?: string;
  idempotencyKey?: string;
}

export interface BatchAccepted {
  queued: number;
  ids: string[];
  emails: { index: number; to: string; id: string }[];
  /** Suppressed recipients, which get no email. */
  rejected: { index: number; to: string; code: string }[];
  warnings?: Warning[];
}

export interface EmailItem {
  id: string;
  to: string;
  from: string;
  subject: string;
  status: EmailStatus;
  createdAt: Timestamp;
  sentAt: Timestamp | null;
  /** True for a test email, else absent. */
  test?: boolean;
  /** Absent for `main`. */
  stream?: string;
}

export interface Recipient {
  email: string;
  type: "to" | "cc" | "bcc";
  status: EmailStatus;
  sentAt: Timestamp | null;
  deliveredAt: Timestamp | null;
  errorMessage: string | null;
  reason: string | null;
  /** The address in Reply-To, with `replyTracking`; absent without it. */
  replyAddress?: string;
}

/** Why an email is not sent now. */
export interface Wait {
  /** Such as `stream_paused`, `destination` or `retry`. */
  cause: string;
  since: Timestamp;
  /** What ends the wait. */
  detail: string;
}

export interface Email extends EmailItem {
  test: boolean;
  htmlContent: string;
  text: string;
  scheduledFor: Timestamp | null;
  deliveredAt: Timestamp | null;
  errorMessage: string | null;
  tags: string[];
  retryCount: number;
  replyTo: string | null;
  cc: string[];
  bcc: string[];
  metadata: Data | null;
  templateId: string | null;
  headers: Record<string, string>;
  attachments: { filename: string; contentType: string; size: number }[];
  recipients: Recipient[];
  waitingFor: Wait | null;
}

export interface EmailFilters {
  status?: EmailStatus | EmailStatus[];
  /** An event on the timeline, such as `complained`. */
  event?: string | string[];
  /** Text contained in a recipient of `to` or in the subject. */
  search?: string;
  tag?: string;
  /** The id of the email's stream, or `main`. */
  stream?: string;
  /** Only test emails, or only live ones. */
  test?: boolean;
  /** Created at or after this time. A date includes the whole day. */
  from?: Date | string;
  to?: Date | string;
}

export interface Export {
  csv: string;
  /** Whether more than 10,000 emails match. */
  truncated: boolean;
}

export interface TimelineEvent {
  id: string;
  eventType: EventType;
  createdAt: Timestamp;
  sentToWebhook: boolean;
  payload: { emailId: string; to?: string; [member: string]: unknown };
}

export interface Cancelled {
  id: string;
  status: "cancelled";
}

export interface Rescheduled {
  id: string;
  status: EmailStatus;
  createdAt: Timestamp;
  scheduledFor: Timestamp;
}

export interface Deleted {
  id: string;
  deleted: true;
}

export interface TemplateFields {
  name: string;
  subject: string;
  htmlContent: string;
  textContent?: string | null;
  /** Can be used in place of the id. */
  alias?: string | null;
  /** Reject emails that lack a value, instead of leaving it empty. */
  strictVariables?: boolean;
}

export interface TemplateItem {
  id: string;
  name: string;
  subject: string;
  alias: string | null;
  strictVariables: boolean;
  createdAt: Timestamp;
  updatedAt: Timestamp;
}

export interface Template extends TemplateItem {
  htmlContent: string;
  textContent: string;
}

export interface Preview {
  subject: string;
  html: string;
  text: string;
  missingVariables: string[];
}

export interface StreamFields {
  name: string;
  description?: string;
  /** `link`: a footer and List-Unsubscribe headers. `headers`: only the headers. `none`: neither, unless bulk. */
  unsubscribe?: "link" | "headers" | "none";
  /** Whether unsubscribes and complaints block this stream or the whole workspace. */
  scope?: "stream" | "workspace";
  /** Whether hard bounces block this stream only. */
  ownBounces?: boolean;
  /** Whether the stream also reaches addresses that unsubscribed from the whole workspace. */
  ignoresUnsubscribes?: boolean;
  /** Whether the preference page of recipients lists the stream. */
  public?: boolean;
  priority?: "high" | "normal" | "low";
  trackOpens?: boolean;
  trackClicks?: boolean;
  /** The operator's route of transports, if the workspace may use several; null for the usual one. */
  transportRoute?: string | null;
}

/** `id` and `kind` cannot be changed later. */
export interface NewStream extends StreamFields {
  id: string;
  kind?: "transactional" | "bulk";
}

/** Of the last 30 UTC days. `complained` counts recipients, the others emails. */
export interface StreamCounts {
  total: number;
  delivered: number;
  bounced: number;
  opened: number;
  clicked: number;
  complained: number;
}

export interface AlertFields {
  /** The percentage at which the alert begins. It ends below nine tenths of it. */
  threshold: number;
  /** Whether the owners of the workspace get emails about the alert; true by default. */
  emailOwners?: boolean;
}

/** `metric` and `stream` cannot be changed later. */
export interface NewAlert extends AlertFields {
  metric: "bounce_rate" | "complaint_rate" | "failure_rate" | "quota_used";
  /** The only stream whose emails count for a rate; null or absent for all emails. */
  stream?: string | null;
}

export interface Alert extends Required<Omit<NewAlert, "stream">> {
  id: string;
  stream?: string;
  /** The present value in percent; null with fewer than 100 emails, or without a quota. */
  value: number | null;
  /** The time at which the alert began; null if it is not triggered. */
  triggeredAt: Timestamp | null;
  lastTriggeredAt: Timestamp | null;
  createdAt: Timestamp;
}

/** A kind of email with its own unsubscribes and complaints. */
export interface Stream extends Required<Omit<NewStream, "transportRoute">> {
  /** The operator's route of transports; absent for the usual one. */
  transportRoute?: string;
  /** The time at which the stream was archived; null if it accepts emails. */
  archivedAt: Timestamp | null;
  /** The time at which the stream was paused; null if it is not. */
  pausedAt: Timestamp | null;
  pausedReason: string;
  createdAt: Timestamp;
  /** Absent from the response to a change. */
  counts?: StreamCounts;
}

export type SuppressionReason = "bounce" | "unsubscribe" | "manual" | "complaint";

export interface Suppression {
  id: string;
  email: string;
  reason: SuppressionReason;
  createdAt: Timestamp;
  /** The only stream that is blocked; absent if all are. */
  stream?: string;
}

export type DomainStatus = "pending" | "verified" | "failed" | "temporary_failure";

export interface DomainRecord {
  record: "DKIM" | "SPF" | "DMARC" | "ReturnPath" | "Tracking" | "TrackingCAA" | "Receiving";
  type: string;
  name: string;
  fqdn: string;
  value: string;
  ttl: number;
  priority: number | null;
  required: boolean;
  status: DomainStatus;
  found: string | null;
  error: string | null;
  note: string | null;
}

export type TlsPolicy = "opportunistic" | "required";

/** The host of the links in a domain's emails, which use it while it is active. */
export interface TrackingHost {
  host: string;
  status: "pending" | "active" | "failed";
  error: string | null;
}

/** Whether email to a domain is received: while it is active. `error`: why none arrives. */
export interface Receiving {
  enabled: boolean;
  status: "disabled" | "pending" | "active" | "failed";
  error: string | null;
}

/** `openTracking`, `clickTracking`: for emails without the option. `tracking`: null for the host of the service. */
export interface DomainChanges {
  tls?: TlsPolicy;
  openTracking?: boolean;
  clickTracking?: boolean;
  tracking?: { subdomain: string } | null;
  /** Whether email to addresses of the domain is received, once its MX record is found. */
  receiving?: boolean;
}

export interface Domain {
  id: string;
  name: string;
  status: DomainStatus;
  tls: TlsPolicy;
  openTracking?: boolean;
  clickTracking?: boolean;
  tracking?: TrackingHost | null;
  receiving?: Receiving;
  records: DomainRecord[];
  warnings?: Warning[];
  createdAt: Timestamp;
  verifiedAt: Timestamp | null;
  lastCheckedAt: Timestamp | null;
}

export type WebhookKind =
  | "sent"
  | "delivered"
  | "bounced"
  | "failed"
  | "opened"
  | "clicked"
  | "unsubscribed"
  | "complained"
  | "deferred"
  | "received"
  | "replied"
  | "alert.triggered"
  | "alert.resolved";

/** The format of the events: Postrider's, or that of another service. */
export type WebhookFormat = "standard" | "resend" | "postmark" | "sendgrid";

export interface Webhook {
  id: string;
  url: string;
  events: WebhookKind[];
  /** The ids of the streams whose events are delivered; absent for all of them. */
  streams?: string[];
  format: WebhookFormat;
  /** Further headers of the requests by name, with values that show nothing; absent without any. */
  headers?: Record<string, string>;
  active: boolean;
  /** The reason if the service disabled the webhook, or null. */
  disabledReason: string | null;
  createdAt: Timestamp;
}

/** A response with the secret, which cannot be read again. */
export interface CreatedWebhook extends Webhook {
  secret: string;
}

export interface WebhookDelivery {
  id: string;
  webhookId: string;
  eventId: string;
  event: WebhookKind;
  test: boolean;
  status: string;
  attemptCount: number;
  statusCode: number | null;
  error: string | null;
  nextAttemptAt: Timestamp | null;
  createdAt: Timestamp;
  succeededAt: Timestamp | null;
}

/** A delivery with its body and attempts. */
export interface WebhookDeliveryDetail extends WebhookDelivery {
  body: string;
  attempts: Data[];
}

/** The body posted to a webhook: one event of one recipient. */
export interface WebhookEvent {
  id: string;
  type: string;
  event: WebhookKind;
  createdAt: Timestamp;
  data: {
    emailId: string;
    to: string;
    from: string;
    subject: string;
    status: EmailStatus;
    tags: string[];
    metadata: Data | null;
    [member: string]: unknown;
  };
}

/**
 * The body posted to a webhook for a received email: `verifyWebhook<ReceivedEvent>(…)`. Text and HTML are cut at
 * 256 KiB each, headers at 64 KiB: `truncated` names what is cut.
 */
export interface ReceivedEvent {
  id: string;
  type: string;
  event: "received";
  createdAt: Timestamp;
  data: ReceivedEmail;
}

export type FeedEventType =
  | WebhookKind
  | "queued"
  | "scheduled"
  | "cancelled"
  | "suppressed"
  | "domain.verified"
  | "domain.failed"
  | "suppression.added"
  | "suppression.removed";

/** An event of the workspace, with the fields of a webhook body. */
export interface FeedEvent {
  id: string;
  type: string;
  event: FeedEventType;
  createdAt: Timestamp;
  /** Pass it as `after` to continue behind this event. */
  cursor: string;
  data: Data;
}

export interface Mailbox {
  email: string;
  /** Empty without one. */
  name: string;
}

/** A file of a sent email. */
export interface SentAttachment {
  id: string;
  filename: string;
  contentType: string;
  /** Bytes after decoding. */
  size: number;
  contentId: string | null;
  /** Works without a key until `urlExpiresAt`. */
  url: string;
  urlExpiresAt: string;
}

export interface ReceivedAttachment {
  id: string;
  filename: string;
  /** As the sender declared it. */
  contentType: string;
  /** Bytes after decoding. */
  size: number;
  contentId: string | null;
  inline: boolean;
  /** Of a calendar object, such as `REQUEST`. */
  method: string | null;
  sha256: string;
  /** A download without a key, until `urlExpiresAt`. */
  url: string;
  urlExpiresAt: Timestamp;
}

/** The sent email that a received one answers. */
export interface AnsweredEmail {
  emailId: string;
  recipient: string;
  matchedBy: "address" | "message_id";
  /** Whether the message is proven to come from `recipient`; without it the match proves no identity. */
  fromRecipient: boolean;
  /** True once retention has deleted the sent email, else absent. */
  deleted?: boolean;
}

export type Verdict = "pass" | "fail" | "softfail" | "neutral" | "none" | "policy" | "temperror" | "permerror";

export interface Authentication {
  /** `pass` if the message is proven to come from the domain of its From. */
  result: Verdict;
  spf: { result: Verdict; domain: string };
  dkim: { result: Verdict; domain: string; selector: string }[];
  dmarc: { result: Verdict; policy: string | null; domain: string };
  arc: { result: Verdict };
}

export type ReceivedStatus = "stored" | "processed" | "blocked" | "unreadable";

/** A received email in a list, without text, HTML and headers. Its content was written by the sender. */
export interface ReceivedItem {
  id: string;
  status: ReceivedStatus;
  /** Null for a reply address, and for the shared address, without a route. */
  routeId: string | null;
  /** The address of the envelope that received it. */
  recipient: string;
  /** The part of the local part after the first plus sign; empty without one. */
  tag: string;
  envelopeFrom: string;
  from: Mailbox | null;
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  date: Timestamp | null;
  messageId: string | null;
  inReplyTo: string | null;
  references: string[];
  attachments: ReceivedAttachment[];
  replyToEmail: AnsweredEmail | null;
  /** Null before it was read. */
  authentication: Authentication | null;
  spam: { score: number; threshold: number; isSpam: boolean; symbols: string[] } | null;
  automatic: "no" | "auto_generated" | "auto_replied" | "list" | "bulk";
  blockedReason: "sender_blocked" | "not_authenticated" | "spam" | "not_a_reply" | null;
  parseErrors: string[];
  remote: { ip: string | null; helo: string; tls: string | null };
  size: number;
  receivedAt: Timestamp;
  expiresAt: Timestamp;
  test: boolean;
}

export interface ReceivedEmail extends ReceivedItem {
  text: string;
  /** Whether the text was made from the HTML. */
  textGenerated: boolean;
  /** The text without quoted messages; null if unknown. */
  replyText: string | null;
  html: string;
  /** The members that are cut: `text`, `html`, `headers`. */
  truncated: string[];
  headers: [string, string][];
  /** The download of the message. */
  raw: { url: string; urlExpiresAt: Timestamp } | null;
  /** The forwards of the email, oldest first; absent in webhooks. Without `emailId`, `error` says why it was not sent. */
  forwards?: { to: string; emailId: string | null; error: string | null; createdAt: Timestamp }[];
}

export interface ReceivedFilters {
  /** Parts of them, ignoring case. */
  recipient?: string;
  from?: string;
  subject?: string;
  tag?: string;
  status?: ReceivedStatus;
  routeId?: string;
  /** Answers to this sent email. */
  emailId?: string;
  /** Received at or after this time. A date includes the whole day. */
  after?: Date | string;
  before?: Date | string;
  /** Only simulated emails, or only others. */
  test?: boolean;
}

export interface Simulation {
  /** The address in RCPT TO. */
  recipient: string;
  /** The message in the format of RFC 5322, at most 5 MiB. */
  raw: string;
  /** The address in MAIL FROM; without it the email is automatic, as a delivery report is. */
  envelopeFrom?: string;
}

/** `emailId`: the id of the new email. */
export interface Forwarded {
  id: string;
  to: string;
  emailId: string;
}

/** `deliveries`: the number of webhooks to which the event is posted again. */
export interface Redelivered {
  id: string;
  deliveries: number;
}

/** `queuedAt`: when the message was queued to be read again. */
export interface Reread {
  id: string;
  queuedAt: string;
}

export interface NewRoute {
  name: string;
  /** A receiving domain, or `shared` for the workspace's address at the domain of the service. */
  domain: string;
  /** A pattern of local parts, such as `support*`. */
  match: string;
  /** 0 to 1000; low numbers come first. */
  priority?: number;
  /** `reject` refuses the recipient; `discard` accepts the message and keeps nothing. */
  action?: "deliver" | "reject" | "discard";
  /** Empty for all webhooks that subscribe to `received`. */
  webhookIds?: string[];
  /** Addresses that have confirmed it. */
  forwardTo?: string[];
  attachments?: "link" | "inline";
  includeRaw?: boolean;
  /** Block messages that are not proven to come from the domain of their From. */
  requireAuthenticated?: boolean;
  /** Block messages with this spam score or a higher one. */
  spamAbove?: number | null;
  /** Block messages that answer no email of the workspace. */
  repliesOnly?: boolean;
  /** Null for as long as the plan allows; 0 until they are delivered. */
  storeDays?: number | null;
  active?: boolean;
}

/** The rule for recipient addresses of a receiving domain. */
export interface Route extends Required<NewRoute> {
  id: string;
  createdAt: Timestamp;
}

export interface RouteMatch {
  /** Null for an unknown address, and for one that needs no route. */
  route: Route | null;
  /** The reply of the mail server, such as `250 2.1.5 OK`. */
  reply: string;
}

export interface SenderBlock {
  id: string;
  sender: string;
  createdAt: Timestamp;
}

export interface UnblockedSender {
  id: string;
  sender: string;
  deleted: true;
}

export interface InboundSettings {
  /** The workspace's address without any DNS; null if the operator has set no RECEIVING_DOMAIN. */
  address: string | null;
  /** The hosts that MX records name. */
  mailHosts: string[];
  maxMessageBytes: number;
  /** Bytes. `limit`: null without one. */
  storage: { used: number; limit: number | null };
  /** Of the current day, UTC. */
  messages: { used: number; limit: number | null };
}

export interface Analytics {
  /** The range in whole hours; null if the request had none. */
  from: Timestamp | null;
  to: Timestamp | null;
  total: number;
  breakdown: { delivered: number; bounced: number; opened: number; clicked: number };
  rates: { deliveryRate: number; bounceRate: number; openRate: number; clickRate: number };
}

export interface DailyVolume {
  /** `2026-11-21`, in UTC. */
  date: string;
  total: number;
  delivered: number;
  bounced: number;
  opened: number;
}

/** The newest event of a group. `message`: the reply of the mail server, without addresses. */
export interface BounceSample {
  emailId: string;
  createdAt: Timestamp;
  code: number | null;
  enhancedCode: string | null;
  message: string;
}

export interface BounceReason {
  reason: string;
  recipients: number;
  /** Of all recipients, between 0 and 1. */
  share: number;
  advice: string;
  /** The page that explains the advice. */
  docsUrl: string;
  sample: BounceSample;
}

export interface BouncingHost {
  /** A mail provider such as Google, or a domain of recipients. */
  name: string;
  recipients: number;
  share: number;
  topReason: string;
  advice: string;
  docsUrl: string;
  sample: BounceSample;
}

export interface BounceCauses {
  event: "bounced" | "failed" | "deferred";
  from: Timestamp;
  to: Timestamp;
  /** Later than `from` if the range has too many events. */
  countedFrom: Timestamp;
  recipients: number;
  reasons: BounceReason[];
  hosts: BouncingHost[];
  /** Recipients at hosts that are not listed. */
  otherHosts: number;
}

export interface QueueStats {
  waiting: number;
  active: number;
  delayed: number;
  completed: number;
  failed: number;
  paused: number;
}

export type Plan = "free" | "pro" | "enterprise";

export type KeyScope = "full_access" | "sending_access" | "sending_only" | "read_only" | "workspace_admin";

export interface Quota {
  /** Null if the plan has no limit. */
  limit: number | null;
  used: number;
  remaining: number | null;
  resetsAt: Timestamp;
}

/** The limits of an API key. An empty array or null is no limit. */
export interface KeyLimits {
  domains: string[];
  networks: string[];
  /** Ids or aliases. */
  templates: string[];
  requestsPerSecond: number | null;
  /** Absent if there is no limit. */
  streams?: string[];
}

export interface Me {
  workspace: { id: string; name: string; plan: Plan };
  key: { id: string; name: string; scope: KeyScope; test: boolean; limits: KeyLimits };
  quota: Quota;
}

export interface NewWorkspace {
  name: string;
  plan?: Plan;
  /** Only for a management key to all workspaces. */
  group?: string;
  /** The address of a person to invite as an owner. */
  ownerEmail?: string;
}

/** Names as the service stores them, in the order given. */
export interface CheckedConfiguration {
  domainNames: string[];
  routeDomains?: string[];
  blockedSenders?: string[];
}

/** The lease of a configuration. `token`: a random text that the run keeps. */
export interface LeaseRequest {
  token: string;
  workspaceId?: string;
}

/** expiresAt: null after the release. */
export interface ConfigurationLease {
  expiresAt: Timestamp | null;
}

export interface ManagedWorkspace {
  id: string;
  name: string;
  plan: Plan;
  group: string;
  suspendedAt: Timestamp | null;
  /** The time at which the data of a deleted workspace is deleted; null if it is not deleted. */
  deletesAt: Timestamp | null;
  suspendedReason: string | null;
  createdAt: Timestamp;
}

/** The quota of the current month and the usage of the last twelve months. */
export interface WorkspaceUsage {
  quota: Quota;
  /** `month` is the first day of the month in UTC, such as `2026-11-01`. */
  months: { month: string; used: number }[];
}

export interface ManagedKey {
  id: string;
  name: string;
  scope: KeyScope;
  test: boolean;
  limits: KeyLimits;
  lastFour: string;
  createdAt: Timestamp;
  expiresAt: Timestamp | null;
  revokedAt: Timestamp | null;
  lastUsedAt: Timestamp | null;
}

export interface NewKey {
  name: string;
  scope: KeyScope;
  expiresAt?: Date | string | null;
  /** Create a test key: its emails are not sent. */
  test?: boolean;
  limits?: Partial<KeyLimits>;
}

/** The response with the API key, which cannot be read again. */
export interface CreatedKey extends ManagedKey {
  key: string;
}

export type MemberRole = "owner" | "member";

export interface Member {
  email: string;
  role: MemberRole;
  createdAt: Timestamp;
}

export interface RemovedMember {
  email: string;
  deleted: true;
}

export interface Invitation {
  id: string;
  email: string;
  role: MemberRole;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

export interface AuditEntry {
  action: string;
  about: string;
  actorKind: string;
  actor: string;
  address: string | null;
  createdAt: Timestamp;
}

/** A transport of the operator. `since`: of its state; `perDay`: its limit, null without one. */
export interface TransportStatus {
  name: string;
  kind: "direct" | "smtp" | "anymail" | "inbox";
  state: "open" | "paused" | "probing" | "draining";
  since: Timestamp | null;
  lastError: string;
  inFlight: number;
  sentToday: number;
  perDay: number | null;
  routes: string[];
  unalignedDomains: string[];
}
