const { get } = require('../requests');

// The API matches parts of an address; the Zap needs an exact match.
const perform = async (z, bundle) => {
  const email = bundle.inputData.email.trim().toLowerCase();
  const { data } = await get(z, bundle, ['suppressions'], { search: email, limit: 100 });
  return data.filter((suppression) => suppression.email.toLowerCase() === email);
};

module.exports = {
  key: 'suppression',
  noun: 'Suppression',
  display: { label: 'Find Blocked Address', description: 'Finds an address on the suppression list.' },
  operation: {
    perform,
    inputFields: [{ key: 'email', label: 'Email Address', type: 'string', required: true }],
    sample: {
      id: 'sup_0Uf7mB5hJ8kLpQsVxZaWcE',
      email: 'ada@example.com',
      reason: 'bounce',
      createdAt: '2026-11-20T08:30:00.412Z',
    },
  },
};
