const { get } = require('../requests');

module.exports = {
  key: 'domain',
  noun: 'Domain',
  display: { label: 'New Domain', description: 'Fills the drop-down of sending domains.', hidden: true },
  operation: {
    perform: async (z, bundle) => {
      const { data } = await get(z, bundle, ['domains'], { page: bundle.meta.page + 1, limit: 100 });
      return data.map(({ id, name, status }) => ({ id, name, status }));
    },
    canPaginate: true,
    sample: { id: 'dom_0Uf7mB5hJ8kLpQsVxZaWcE', name: 'example.com', status: 'verified' },
  },
};
