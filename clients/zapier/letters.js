/** The fields and the body that the actions which send have in common. */

const NAME = /[^A-Za-z0-9 !#$%&'*+\-/=?^_`{|}~\u0080-\uffff]/;

const senderFields = [
  { key: 'from_name', label: 'From Name', type: 'string' },
  { key: 'from_user', label: 'From Address, Before the @', type: 'string', required: true, placeholder: 'hello' },
  {
    key: 'from_domain',
    label: 'From Domain',
    type: 'string',
    required: true,
    dynamic: 'domain.name.name',
    helpText: 'A domain that is registered in your workspace.',
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
    helpText: 'One address or up to 50, who all see each other: `ada@example.com` or `Ada L <ada@example.com>`.',
  },
  { key: 'cc', label: 'Cc', type: 'string', list: true },
  { key: 'bcc', label: 'Bcc', type: 'string', list: true },
];

const sharedFields = [
  { key: 'reply_to', label: 'Reply To', type: 'string' },
  { key: 'tags', label: 'Tags', type: 'string', list: true },
  { key: 'scheduled_for', label: 'Scheduled For', type: 'datetime', helpText: 'At most 30 days ahead; now when empty.' },
  {
    key: 'idempotency_key',
    label: 'Idempotency Key',
    type: 'string',
    helpText: "Of one key only one email is accepted. Map the trigger's ID, and a replayed Zap sends nothing twice.",
  },
];

const letterFields = [
  { key: 'metadata', label: 'Metadata', dict: true, helpText: 'Data of your own, kept and told to webhooks.' },
  { key: 'attachments', label: 'Attachments', type: 'file', list: true },
];

const senderOf = ({ from_name: name, from_user: user, from_domain: domain }) => {
  const address = `${user}@${domain}`;
  if (!name) return address;
  // A name with other characters than these is a quoted string (RFC 5322, section 3.2.4).
  return NAME.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}" <${address}>` : `${name} <${address}>`;
};

/** Leave out what was left empty in the form. */
const given = (fields) =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== '' && value?.length !== 0),
  );

const sharedOf = (input) =>
  given({ from: senderOf(input), replyTo: input.reply_to, tags: input.tags, scheduledFor: input.scheduled_for });

const letterOf = async (z, input) => ({
  ...sharedOf(input),
  ...given({ to: input.to, cc: input.cc, bcc: input.bcc, metadata: input.metadata }),
  ...given({ attachments: await Promise.all((input.attachments ?? []).map((url) => fetchFile(z, url))) }),
});

/** Fetch a file that an earlier step gives as an address. */
const fetchFile = async (z, url) => {
  const response = await z.request({ url, raw: true });
  const content = (await response.buffer()).toString('base64');
  return { filename: nameOf(response, url), content, ...given({ contentType: typeOf(response) }) };
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
  sharedFields,
  letterFields,
  sharedOf,
  letterOf,
  given,
  acceptedOutput,
  acceptedSample,
};
