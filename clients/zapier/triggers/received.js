const { get } = require('../requests');
const { isDelivery, performUnsubscribe, subscribe } = require('../webhooks');

const SAMPLE_EMAILS = 3;

const performSubscribe = (z, bundle) => subscribe(z, bundle, { events: ['received'] });

const perform = (z, bundle) => {
  const email = bundle.cleanedRequest.data;
  return isDelivery(z, bundle) && isWanted(bundle.inputData, email) ? [email] : [];
};

/** Return the newest received emails as samples for the Zap editor. */
const performList = async (z, bundle) => {
  const { data } = await get(z, bundle, ['inbound', 'emails'], { limit: SAMPLE_EMAILS });
  const emails = await Promise.all(data.map(({ id }) => get(z, bundle, ['inbound', 'emails', id])));
  return emails.filter((email) => isWanted(bundle.inputData, email));
};

const isWanted = ({ recipient = '', only_proven, only_answers, include_automatic }, email) => {
  if (!email.recipient.toLowerCase().includes(recipient.trim().toLowerCase())) return false;
  if (only_proven && email.authentication?.result !== 'pass') return false;
  if (only_answers && !email.replyToEmail) return false;
  return Boolean(include_automatic) || email.automatic === 'no';
};

module.exports = {
  key: 'received',
  noun: 'Received Email',
  display: { label: 'Email Received', description: 'Triggers when an email is received.' },
  operation: {
    type: 'hook',
    performSubscribe,
    performUnsubscribe,
    perform,
    performList,
    inputFields: [
      { key: 'recipient', label: 'Recipient', type: 'string', helpText: 'Text that the receiving address contains; all if empty.' },
      {
        key: 'only_proven',
        label: 'Only Proven Senders',
        type: 'boolean',
        default: 'no',
        helpText: 'Ignore emails unless the domain of their sender is proven. Anybody can write any sender.',
      },
      { key: 'only_answers', label: 'Only Answers to Sent Emails', type: 'boolean', default: 'no' },
      {
        key: 'include_automatic',
        label: 'Include Automatic Emails',
        type: 'boolean',
        default: 'no',
        helpText: 'Notices of absence, delivery reports and mailing lists. Answering them can cause loops.',
      },
    ],
    outputFields: [
      { key: 'id', label: 'Received Email ID' },
      { key: 'recipient', label: 'Recipient' },
      { key: 'tag', label: 'Label After the Plus Sign' },
      { key: 'from__email', label: 'From Email' },
      { key: 'from__name', label: 'From Name' },
      { key: 'subject', label: 'Subject' },
      { key: 'replyText', label: 'Text Without Quotes' },
      { key: 'text', label: 'Text' },
      { key: 'authentication__result', label: 'Sender Is Proven' },
      { key: 'replyToEmail__emailId', label: 'ID of the Answered Email' },
      { key: 'receivedAt', label: 'Received At', type: 'datetime' },
    ],
    sample: {
      id: 'inb_0Uf7m2kQ9VxHc3NwZrTb4L',
      recipient: 'support+4711@in.example.com',
      tag: '4711',
      from: { email: 'ada@example.com', name: 'Ada' },
      subject: 'Re: Order 4711',
      text: 'Where is my order?',
      replyText: 'Where is my order?',
      attachments: [],
      replyToEmail: {
        emailId: '0Uf7m2kQ8JsDp6YeGiUa1X',
        recipient: 'ada@example.com',
        matchedBy: 'message_id',
        fromRecipient: true,
      },
      authentication: { result: 'pass' },
      automatic: 'no',
      receivedAt: '2026-11-20T09:12:31.482Z',
    },
  },
};
