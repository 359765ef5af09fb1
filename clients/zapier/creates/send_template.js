const { post } = require('../requests');
const emailFields = require('../email_fields');

const perform = async (z, bundle) => {
  const { template_id: templateId, template_data: templateData, subject, idempotency_key: key } = bundle.inputData;
  const email = await emailFields.emailBodyOf(z, bundle.inputData);
  const body = { ...email, ...emailFields.withoutEmpty({ templateId, templateData, subject }) };
  return await post(z, bundle, ['emails', 'send'], body, key);
};

module.exports = {
  key: 'send_template',
  noun: 'Email',
  display: { label: 'Send Email From Template', description: 'Sends an email with the content of a template.' },
  operation: {
    perform,
    inputFields: [
      ...emailFields.senderFields,
      ...emailFields.recipientFields,
      emailFields.templateField,
      { key: 'template_data', label: 'Template Data', dict: true, helpText: "The values of the template's variables." },
      { key: 'subject', label: 'Subject', type: 'string', helpText: "Replaces the template's subject." },
      ...emailFields.sharedFields,
      ...emailFields.contentFields,
    ],
    outputFields: emailFields.acceptedOutput,
    sample: emailFields.acceptedSample,
  },
};
