const { get } = require('./requests');

module.exports = {
  type: 'custom',
  fields: [
    {
      key: 'base_url',
      label: 'Base URL',
      required: true,
      type: 'string',
      helpText: 'Where your Postrider runs, such as `https://mail.example.com`.',
    },
    {
      key: 'api_key',
      label: 'API Key',
      required: true,
      type: 'password',
      helpText: 'Made in the dashboard. Triggers need the scope `full_access`; sending works with `sending_access`.',
    },
  ],
  test: (z, bundle) => get(z, bundle, ['me']),
  connectionLabel: (z, bundle) => `${bundle.inputData.workspace.name} (${bundle.inputData.key.name})`,
};
