// What a page of the site does in a browser: it sets formulas, and answers searches. Both work from disk, without a server.

function setFormulas() { // which pymdownx.arithmatex has marked: \(...\) in a line, \[...\] by itself
  document.querySelectorAll('.arithmatex').forEach(function (element) {
    var text = element.textContent.trim();
    katex.render(text.slice(2, -2), element, {displayMode: text.startsWith('\\['), throwOnError: false});
  });
}

function load(name) {
  return new Promise(function (done, failed) {
    var script = document.createElement('script');
    script.src = base_url + '/search/' + name;
    script.onload = done;
    script.onerror = failed;
    document.head.appendChild(script);
  });
}

function search(documents, words) { // sections of pages that have the words, best first
  lunr.tokenizer.separator = /[^\w]+/; // parts of a key path are words
  var index = lunr(function () {
    this.ref('number');
    this.field('title', {boost: 10});
    this.field('text');
    this.pipeline.remove(lunr.stopWordFilter); // `where` and `all` are keys and values
    this.searchPipeline.remove(lunr.stopWordFilter);
    documents.forEach(function (document, number) {
      this.add({number: number, title: document.title, text: document.text});
    }, this);
  });
  return index.query(function (query) {
    lunr.tokenizer(words).forEach(function (token) {
      query.term(token.toString(), {usePipeline: true, boost: 10});
      query.term(token.toString(), {usePipeline: false, wildcard: lunr.Query.wildcard.TRAILING});
    });
  }).map(function (hit) {
    return documents[hit.ref];
  });
}

function showResults() {
  var place = document.getElementById('mkdocs-search-results');
  var words = new URLSearchParams(window.location.search).get('q') || '';
  if (!place || !words.trim()) return;
  document.getElementById('mkdocs-search-query').value = words;
  load('lunr.js').then(function () {
    return load('search_index.js');
  }).then(function () {
    var found = search(search_documents, words);
    place.textContent = found.length ? '' : place.getAttribute('data-no-results-text');
    found.slice(0, 50).forEach(function (document_found) {
      var article = place.appendChild(document.createElement('article'));
      var link = article.appendChild(document.createElement('h3')).appendChild(document.createElement('a'));
      link.href = base_url + '/' + document_found.location;
      link.textContent = document_found.title;
      article.appendChild(document.createElement('p')).textContent = document_found.text.slice(0, 200);
    });
  });
}

if (typeof document !== 'undefined') {
  document.addEventListener('DOMContentLoaded', function () {
    setFormulas();
    showResults();
  });
}
