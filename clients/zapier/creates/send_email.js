const { post } = require('../requests');
const letters = require('../letters');

const perform = async (z, bundle) => {
  const { subject, html, text, idempotency_key: key } = bundle.inputData;
  const body = { ...(await letters.letterOf(z, bundle.inputData)), ...letters.given({ subject, html, text }) };
  return await post(z, bundle, ['emails', 'send'], body, key);
};

module.exports = {
  key: 'send_email',
  noun: 'Email',
  display: { label: 'Send Email', description: 'Sends an email, now or later.' },
  operation: {
    perform,
    inputFields: [
      ...letters.senderFields,
      ...letters.recipientFields,
      { key: 'subject', label: 'Subject', type: 'string', required: true },
      { key: 'html', label: 'HTML', type: 'text', helpText: 'An email needs HTML, text or both.' },
      { key: 'text', label: 'Text', type: 'text', helpText: 'Made from the HTML when empty.' },
      ...letters.sharedFields,
      ...letters.letterFields,
    ],
    outputFields: letters.acceptedOutput,
    sample: letters.acceptedSample,
  },
};
