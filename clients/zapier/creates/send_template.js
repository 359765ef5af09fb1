const { post } = require('../requests');
const letters = require('../letters');

const perform = async (z, bundle) => {
  const { template_id: templateId, template_data: templateData, subject, idempotency_key: key } = bundle.inputData;
  const letter = await letters.letterOf(z, bundle.inputData);
  const body = { ...letter, ...letters.given({ templateId, templateData, subject }) };
  return await post(z, bundle, ['emails', 'send'], body, key);
};

module.exports = {
  key: 'send_template',
  noun: 'Email',
  display: { label: 'Send Email From Template', description: 'Sends an email with the texts of a template.' },
  operation: {
    perform,
    inputFields: [
      ...letters.senderFields,
      ...letters.recipientFields,
      letters.templateField,
      { key: 'template_data', label: 'Template Data', dict: true, helpText: "The values of the template's variables." },
      { key: 'subject', label: 'Subject', type: 'string', helpText: "In place of the template's." },
      ...letters.sharedFields,
      ...letters.letterFields,
    ],
    outputFields: letters.acceptedOutput,
    sample: letters.acceptedSample,
  },
};
