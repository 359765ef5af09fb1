/** Return the address of a path; ids in it are escaped. */
const addressOf = (bundle, path) => `${baseOf(bundle)}/v1/${path.map(segment).join('/')}`;

const baseOf = (bundle) => bundle.authData.base_url.trim().replace(/\/+$/, '');

// An empty id would name the whole collection, and dots would climb out of it.
const segment = (part) => {
  if (typeof part !== 'string' || /^\.*$/.test(part.trim())) throw new Error('The ID is empty.');
  return encodeURIComponent(part.trim());
};

const call = async (z, bundle, method, path, { query = {}, body, key } = {}) => {
  const response = await z.request({
    method,
    url: addressOf(bundle, path),
    params: query,
    body,
    headers: key ? { 'Idempotency-Key': key } : {},
    // A redirect would turn a POST into a GET: it is told, not followed.
    redirect: 'manual',
  });
  return response.data;
};

const get = (z, bundle, path, query) => call(z, bundle, 'GET', path, { query });
const post = (z, bundle, path, body, key) => call(z, bundle, 'POST', path, { body, key });
const remove = (z, bundle, path) => call(z, bundle, 'DELETE', path);

/** Send the key to the service alone: files are fetched from elsewhere with the same requests. */
const authorize = (request, z, bundle) => {
  if (!bundle.authData?.base_url || !request.url.startsWith(`${baseOf(bundle)}/v1/`)) return request;
  return { ...request, headers: { ...request.headers, Authorization: `Bearer ${bundle.authData.api_key.trim()}` } };
};

/** Turn a refusal into a sentence for the Zap's history; Zapier itself tries again after a ThrottledError. */
const explain = (response, z) => {
  if (response.status < 300) return response;
  const problem = problemOf(response);
  if (problem.code === 'rate_limit_exceeded') {
    throw new z.errors.ThrottledError(problem.detail, Number(response.getHeader('retry-after')) || 1);
  }
  const fields = (problem.errors ?? []).map(({ field, detail }) => `${field}: ${detail}`);
  const message = [problem.detail ?? `The answer was ${response.status}; check the base URL.`, ...fields].join('\n');
  throw new z.errors.Error(message, response.status === 401 ? 'AuthenticationError' : problem.code, response.status);
};

const problemOf = (response) => {
  try {
    return JSON.parse(response.content) ?? {};
  } catch {
    return {};
  }
};

module.exports = { get, post, remove, authorize, explain };
