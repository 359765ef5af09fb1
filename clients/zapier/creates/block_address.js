const { post } = require('../requests');
const { streamField, withoutEmpty } = require('../email_fields');
const { sample } = require('../searches/suppression').operation;

module.exports = {
  key: 'block_address',
  noun: 'Suppression',
  display: { label: 'Block Address', description: 'Adds an address to the suppression list, so that no emails are sent to it.' },
  operation: {
    perform: (z, bundle) => {
      const { email, stream } = bundle.inputData;
      return post(z, bundle, ['suppressions'], withoutEmpty({ email, stream }));
    },
    inputFields: [
      { key: 'email', label: 'Email Address', type: 'string', required: true },
      { ...streamField, helpText: 'The only stream to block; all of the workspace if empty.' },
    ],
    sample,
  },
};
