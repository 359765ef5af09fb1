/** Input fields and request bodies shared by the sending actions. */

const NEEDS_QUOTES = /[^A-Za-z0-9 !#$%&'*+\-/=?^_`{|}~\u0080-\uffff]/;

const senderFields = [
  { key: 'from_name', label: 'From Name', type: 'string' },
  { key: 'from_user', label: 'From Address, Before the @', type: 'string', required: true, placeholder: 'hello' },
  {
    key: 'from_domain',
    label: 'From Domain',
    type: 'string',
    required: true,
    dynamic: 'domain.name.name',
    helpText: 'A domain registered in your workspace.',
  },
];

const templateField = {
  key: 'template_id',
  label: 'Template',
  type: 'string',
  required: true,
  dynamic: 'template.id.name',
};

const recipientFields = [
  {
    key: 'to',
    label: 'To',
    type: 'string',
    list: true,
    required: true,
    helpText: 'One address or up to 50; all of them see all addresses: `ada@example.com` or `Ada L <ada@example.com>`.',
  },
  { key: 'cc', label: 'Cc', type: 'string', list: true },
  { key: 'bcc', label: 'Bcc', type: 'string', list: true },
  {
    key: 'envelope',
    label: 'Envelope',
    type: 'string',
    list: true,
    helpText: 'The addresses of To, Cc and Bcc that receive the email; all of them if empty. The others are only shown.',
  },
];

const streamField = {
  key: 'stream',
  label: 'Stream',
  type: 'string',
  dynamic: 'stream.id.name',
  helpText: 'The kind of email, with its own unsubscribes. `main`, or the only stream of the API key, if empty.',
};

const sharedFields = [
  { key: 'reply_to', label: 'Reply To', type: 'string' },
  { key: 'tags', label: 'Tags', type: 'string', list: true },
  { key: 'scheduled_for', label: 'Scheduled For', type: 'datetime', helpText: 'At most 30 days ahead. Sent now if empty.' },
  streamField,
  {
    key: 'sensitive',
    label: 'Sensitive',
    type: 'boolean',
    helpText: 'Nobody can read the content after the email was accepted, and it is removed once it is delivered.',
  },
  {
    key: 'deliver_within',
    label: 'Deliver Within (Seconds)',
    type: 'integer',
    helpText: 'The time after which the email is not sent any more: it fails with the reason `expired`. As the template or stream has it if empty.',
  },
  {
    key: 'idempotency_key',
    label: 'Idempotency Key',
    type: 'string',
    helpText: "Only one email is accepted per key. Map the trigger's ID, so that a replayed Zap never sends twice.",
  },
];

const contentFields = [
  { key: 'metadata', label: 'Metadata', dict: true, helpText: 'Custom data, stored with the email and included in webhook events.' },
  { key: 'attachments', label: 'Attachments', type: 'file', list: true },
  {
    key: 'alternatives',
    label: 'Alternatives',
    type: 'file',
    list: true,
    helpText: 'Files that are another form of the email, such as an invitation (.ics).',
  },
];

const senderOf = ({ from_name: name, from_user: user, from_domain: domain }) => {
  const address = `${user}@${domain}`;
  if (!name) return address;
  // Names with other characters must be quoted strings (RFC 5322, section 3.2.4).
  return NEEDS_QUOTES.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}" <${address}>` : `${name} <${address}>`;
};

/** Return the fields without empty form values. */
const withoutEmpty = (fields) =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== '' && value?.length !== 0),
  );

const sharedOf = (input) =>
  withoutEmpty({
    from: senderOf(input),
    replyTo: input.reply_to,
    tags: input.tags,
    scheduledFor: input.scheduled_for,
    stream: input.stream,
    sensitive: input.sensitive,
    deliverWithin: input.deliver_within,
  });

const emailBodyOf = async (z, input) => ({
  ...sharedOf(input),
  ...withoutEmpty({ to: input.to, cc: input.cc, bcc: input.bcc, envelope: input.envelope, metadata: input.metadata }),
  ...withoutEmpty({ attachments: [...(await fetchFiles(z, input.attachments)), ...(await alternativesOf(z, input))] }),
});

const alternativesOf = async (z, input) =>
  (await fetchFiles(z, input.alternatives)).map((file) => ({ ...file, alternative: true }));

const fetchFiles = (z, urls) => Promise.all((urls ?? []).map((url) => fetchFile(z, url)));

/** Fetch a file that an earlier step provides as a URL. */
const fetchFile = async (z, url) => {
  const response = await z.request({ url, raw: true });
  const content = (await response.buffer()).toString('base64');
  return { filename: nameOf(response, url), content, ...withoutEmpty({ contentType: typeOf(response) }) };
};

const nameOf = (response, url) => {
  const [, named] = /filename="?([^";]+)"?/.exec(response.headers.get('content-disposition') ?? '') ?? [];
  const last = decodeURIComponent(new URL(url).pathname.split('/').pop());
  return (named || last || 'attachment').replace(/[/\\]/g, '_');
};

const typeOf = (response) => response.headers.get('content-type') ?? undefined;

const acceptedOutput = [
  { key: 'id', label: 'Email ID' },
  { key: 'status', label: 'Status' },
  { key: 'createdAt', label: 'Created At', type: 'datetime' },
];

const acceptedSample = { id: '0Uf7m2kQ9VxHc3NwZrTb4L', status: 'queued', createdAt: '2026-11-20T08:30:00.412Z' };

module.exports = {
  senderFields,
  templateField,
  recipientFields,
  streamField,
  sharedFields,
  contentFields,
  sharedOf,
  emailBodyOf,
  withoutEmpty,
  acceptedOutput,
  acceptedSample,
};
