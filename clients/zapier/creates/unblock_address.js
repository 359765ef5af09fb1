const { remove } = require('../requests');

module.exports = {
  key: 'unblock_address',
  noun: 'Suppression',
  display: { label: 'Unblock Address', description: 'Removes an address from the suppression list.' },
  operation: {
    perform: (z, bundle) => remove(z, bundle, ['suppressions', bundle.inputData.id]),
    inputFields: [
      {
        key: 'id',
        label: 'Suppression ID',
        type: 'string',
        required: true,
        helpText: 'Find it with the search "Find Blocked Address".',
      },
    ],
    sample: { id: 'sup_0Uf7mB5hJ8kLpQsVxZaWcE', email: 'ada@example.com', deleted: true },
  },
};
