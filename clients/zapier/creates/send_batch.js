const { post } = require('../requests');
const emailFields = require('../email_fields');

const perform = async (z, bundle) => {
  const { template_id: templateId, recipients, template_data: templateData, subject, idempotency_key: key } = bundle.inputData;
  const batchRecipients = recipients.map((to) => ({ to, ...emailFields.withoutEmpty({ templateData }) }));
  const shared = emailFields.sharedOf(bundle.inputData);
  const body = { ...shared, templateId, recipients: batchRecipients, ...emailFields.withoutEmpty({ subject }) };
  return await post(z, bundle, ['emails', 'batch'], body, key);
};

module.exports = {
  key: 'send_batch',
  noun: 'Batch',
  display: {
    label: 'Send Template to Many',
    description: 'Sends a template to up to 500 recipients. Each recipient gets a separate email.',
  },
  operation: {
    perform,
    inputFields: [
      ...emailFields.senderFields,
      emailFields.templateField,
      { key: 'recipients', label: 'Recipients', type: 'string', list: true, required: true },
      { key: 'template_data', label: 'Template Data', dict: true, helpText: 'The same values for all recipients.' },
      { key: 'subject', label: 'Subject', type: 'string', helpText: "Replaces the template's subject." },
      ...emailFields.sharedFields,
    ],
    sample: {
      queued: 1,
      ids: ['0Uf7m2kQ9VxHc3NwZrTb4L'],
      emails: [{ index: 0, to: 'ada@example.com', id: '0Uf7m2kQ9VxHc3NwZrTb4L' }],
      rejected: [],
    },
  },
};
