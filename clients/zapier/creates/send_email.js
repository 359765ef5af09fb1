const { post } = require('../requests');
const emailFields = require('../email_fields');

const perform = async (z, bundle) => {
  const { subject, html, text, idempotency_key: key } = bundle.inputData;
  const email = await emailFields.emailBodyOf(z, bundle.inputData);
  const body = { ...email, ...emailFields.withoutEmpty({ subject, html, text }) };
  return await post(z, bundle, ['emails', 'send'], body, key);
};

module.exports = {
  key: 'send_email',
  noun: 'Email',
  display: { label: 'Send Email', description: 'Sends an email, now or later.' },
  operation: {
    perform,
    inputFields: [
      ...emailFields.senderFields,
      ...emailFields.recipientFields,
      { key: 'subject', label: 'Subject', type: 'string', required: true },
      { key: 'html', label: 'HTML', type: 'text', helpText: 'An email needs HTML, text or both.' },
      { key: 'text', label: 'Text', type: 'text', helpText: 'Generated from the HTML if empty.' },
      ...emailFields.sharedFields,
      ...emailFields.contentFields,
    ],
    outputFields: emailFields.acceptedOutput,
    sample: emailFields.acceptedSample,
  },
};
