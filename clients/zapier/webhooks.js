const { post, remove } = require('./requests');
const { isSigned } = require('./signature');

/** Create the webhook of a Zap. */
const subscribe = (z, bundle, fields) => post(z, bundle, ['webhooks'], { url: bundle.targetUrl, ...fields });

const performUnsubscribe = (z, bundle) => remove(z, bundle, ['webhooks', bundle.subscribeData.id]);

/** Whether the request was signed with the secret of the subscription. */
const isDelivery = (z, bundle) => {
  const secret = bundle.subscribeData?.secret;
  if (secret && bundle.rawRequest && isSigned(bundle.rawRequest, secret)) return true;
  z.console.log('Ignored a request with an invalid signature.');
  return false;
};

module.exports = { isDelivery, performUnsubscribe, subscribe };
