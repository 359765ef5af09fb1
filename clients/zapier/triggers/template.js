const { get } = require('../requests');

module.exports = {
  key: 'template',
  noun: 'Template',
  display: { label: 'New Template', description: 'Fills the drop-down of templates.', hidden: true },
  operation: {
    // Zapier counts pages from 0.
    perform: async (z, bundle) => (await get(z, bundle, ['templates'], { page: bundle.meta.page + 1, limit: 100 })).data,
    canPaginate: true,
    sample: { id: 'tpl_0Uf7mB5hJ8kLpQsVxZaWcE', name: 'Welcome', subject: 'Welcome, {{name}}' },
  },
};
