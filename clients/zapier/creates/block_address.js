const { post } = require('../requests');
const { sample } = require('../searches/suppression').operation;

module.exports = {
  key: 'block_address',
  noun: 'Suppression',
  display: { label: 'Block Address', description: 'Adds an address to the suppression list, so that no emails are sent to it.' },
  operation: {
    perform: (z, bundle) => post(z, bundle, ['suppressions'], { email: bundle.inputData.email }),
    inputFields: [{ key: 'email', label: 'Email Address', type: 'string', required: true }],
    sample,
  },
};
