const { remove } = require('../requests');

module.exports = {
  key: 'cancel_email',
  noun: 'Email',
  display: { label: 'Cancel Email', description: 'Cancels a scheduled email that has not been sent.' },
  operation: {
    perform: (z, bundle) => remove(z, bundle, ['emails', bundle.inputData.id]),
    inputFields: [{ key: 'id', label: 'Email ID', type: 'string', required: true }],
    sample: { id: '0Uf7m2kQ9VxHc3NwZrTb4L', status: 'cancelled' },
  },
};
