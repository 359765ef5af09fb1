const { get } = require('../requests');
const { streamField, withoutEmpty } = require('../email_fields');
const { sample } = require('./email').operation;

const STATUSES = ['scheduled', 'queued', 'sent', 'delivered', 'bounced', 'failed', 'opened', 'clicked', 'cancelled'];

const perform = async (z, bundle) => {
  const { search, tag, stream, status, from, to } = bundle.inputData;
  const query = withoutEmpty({ search, tag, stream, status, from, to, limit: 100 });
  return (await get(z, bundle, ['emails'], query)).data;
};

module.exports = {
  key: 'emails',
  noun: 'Email',
  display: { label: 'Find Emails', description: 'Finds emails by recipient, subject, tag, stream, status or time, newest first.' },
  operation: {
    perform,
    inputFields: [
      { key: 'search', label: 'Recipient or Subject', type: 'string' },
      { key: 'tag', label: 'Tag', type: 'string' },
      { ...streamField, helpText: 'Only emails of this stream.' },
      { key: 'status', label: 'Status', type: 'string', choices: STATUSES },
      { key: 'from', label: 'Created After', type: 'datetime' },
      { key: 'to', label: 'Created Before', type: 'datetime' },
    ],
    sample,
  },
};
