const { get } = require('./requests');

module.exports = {
  type: 'custom',
  fields: [
    {
      key: 'base_url',
      label: 'Base URL',
      required: true,
      type: 'string',
      helpText: 'The address of your Postrider installation, such as `https://mail.example.com`.',
    },
    {
      key: 'api_key',
      label: 'API Key',
      required: true,
      type: 'password',
      helpText: 'Create one in the dashboard. Sending needs the scope `sending_access`; triggers need `full_access`.',
    },
  ],
  test: (z, bundle) => get(z, bundle, ['me']),
  connectionLabel: (z, bundle) => `${bundle.inputData.workspace.name} (${bundle.inputData.key.name})`,
};
