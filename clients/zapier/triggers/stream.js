const { get } = require('../requests');

module.exports = {
  key: 'stream',
  noun: 'Stream',
  display: { label: 'New Stream', description: 'Fills the drop-down of streams.', hidden: true },
  operation: {
    perform: async (z, bundle) => {
      const { data } = await get(z, bundle, ['streams'], { page: bundle.meta.page + 1, limit: 100 });
      return data.map(({ id, name, kind }) => ({ id, name, kind }));
    },
    canPaginate: true,
    sample: { id: 'newsletter', name: 'Newsletter', kind: 'bulk' },
  },
};
