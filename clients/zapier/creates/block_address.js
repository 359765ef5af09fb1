const { post } = require('../requests');
const { sample } = require('../searches/suppression').operation;

module.exports = {
  key: 'block_address',
  noun: 'Suppression',
  display: { label: 'Block Address', description: 'Puts an address on the suppression list: nothing is sent to it.' },
  operation: {
    perform: (z, bundle) => post(z, bundle, ['suppressions'], { email: bundle.inputData.email }),
    inputFields: [{ key: 'email', label: 'Email Address', type: 'string', required: true }],
    sample,
  },
};
