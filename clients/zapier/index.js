const authentication = require('./authentication');
const { authorize, explain } = require('./requests');
const { version } = require('./package.json');

const byKey = (...parts) => Object.fromEntries(parts.map((part) => [part.key, part]));

module.exports = {
  version,
  platformVersion: require('zapier-platform-core').version,
  authentication,
  beforeRequest: [authorize],
  afterResponse: [explain],
  triggers: byKey(
    require('./triggers/event'),
    require('./triggers/received'),
    require('./triggers/template'),
    require('./triggers/domain'),
    require('./triggers/stream'),
  ),
  searches: byKey(require('./searches/email'), require('./searches/emails'), require('./searches/suppression')),
  creates: byKey(
    require('./creates/send_email'),
    require('./creates/send_template'),
    require('./creates/send_batch'),
    require('./creates/cancel_email'),
    require('./creates/block_address'),
    require('./creates/unblock_address'),
  ),
};
