const { get } = require('../requests');

module.exports = {
  key: 'email',
  noun: 'Email',
  display: { label: 'Get Email', description: 'Gets an email with its status, by its ID.' },
  operation: {
    perform: async (z, bundle) => [await get(z, bundle, ['emails', bundle.inputData.id])],
    inputFields: [{ key: 'id', label: 'Email ID', type: 'string', required: true }],
    sample: {
      id: '0Uf7m2kQ9VxHc3NwZrTb4L',
      to: 'ada@example.com',
      from: 'hello@example.com',
      subject: 'Hello',
      status: 'delivered',
      createdAt: '2026-11-20T08:30:00.412Z',
    },
  },
};
