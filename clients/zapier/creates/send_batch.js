const { post } = require('../requests');
const letters = require('../letters');

const perform = async (z, bundle) => {
  const { template_id: templateId, recipients, template_data: templateData, subject, idempotency_key: key } = bundle.inputData;
  const people = recipients.map((to) => ({ to, ...letters.given({ templateData }) }));
  const body = { ...letters.sharedOf(bundle.inputData), templateId, recipients: people, ...letters.given({ subject }) };
  return await post(z, bundle, ['emails', 'batch'], body, key);
};

module.exports = {
  key: 'send_batch',
  noun: 'Batch',
  display: {
    label: 'Send Template to Many',
    description: 'Sends a template to up to 500 recipients, each with an email of their own.',
  },
  operation: {
    perform,
    inputFields: [
      ...letters.senderFields,
      letters.templateField,
      { key: 'recipients', label: 'Recipients', type: 'string', list: true, required: true },
      { key: 'template_data', label: 'Template Data', dict: true, helpText: 'The same values for all of them.' },
      { key: 'subject', label: 'Subject', type: 'string', helpText: "In place of the template's." },
      ...letters.sharedFields,
    ],
    sample: {
      queued: 1,
      ids: ['0Uf7m2kQ9VxHc3NwZrTb4L'],
      emails: [{ index: 0, to: 'ada@example.com', id: '0Uf7m2kQ9VxHc3NwZrTb4L' }],
      rejected: [],
    },
  },
};
