/** One page of a list. */
export interface Page<T> {
  data: T[];
  total: number;
  page: number;
  limit: number;
  /** False if there are more items than `total`, or may be; absent otherwise. */
  totalIsExact?: boolean;
  /** On the last page that page numbers reach: the filter `to` that continues the list, from page 1. */
  continueTo?: string;
}

/** The page of a list to request; `to` in place of the list's own. */
export interface Position {
  page?: number;
  to?: string;
}

export interface Paging {
  /** Starts at 1. */
  page?: number;
  /** At most 100. */
  limit?: number;
}

/**
 * A list: `await` it for one page, or iterate over all items with `for await`.
 *
 * Pages are requested one after the other, and older ones with `continueTo`. An item that moves to the next page
 * because a newer item was added is not repeated.
 */
export class List<T extends object> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #fetchPage: (position: Position) => Promise<Page<T>>;

  constructor(fetchPage: (position: Position) => Promise<Page<T>>) {
    this.#fetchPage = fetchPage;
  }

  then<A = Page<T>, B = never>(
    fulfilled?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#fetchPage({}).then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    let page = await this.#fetchPage({});
    let position: Position = {};
    // Of the pages before continueTo, and of those since.
    let earlier = new Set<string>();
    let known = new Set<string>();
    while (page.data.length > 0 || page.continueTo) {
      for (const item of page.data) {
        const identity = identityOf(item);
        if (!known.has(identity) && !earlier.has(identity)) yield item;
      }
      for (const item of page.data) known.add(identityOf(item));
      if (page.continueTo && page.continueTo !== position.to) {
        position = { to: page.continueTo, page: 1 };
        [earlier, known] = [known, new Set()];
      } else if (page.page * page.limit >= page.total) {
        return;
      } else {
        position = { ...position, page: page.page + 1 };
      }
      page = await this.#fetchPage(position);
    }
  }
}

/** Return the id of an item. Members and audit entries have none and are compared as a whole. */
function identityOf(item: object): string {
  return "id" in item ? String(item.id) : JSON.stringify(item);
}
